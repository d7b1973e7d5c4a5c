// _runtime.Counters and Counted: what was asked of a network and how long it took.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "hetnn/base/error.h"
#include "hetnn/serve/counters.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using serve::Counted;
using serve::Counters;

serve::Outcome outcome_of(std::string_view name) {
  const auto* at = std::find(serve::kOutcomes.begin(), serve::kOutcomes.end(), name);
  HETNN_ASSERT(at != serve::kOutcomes.end(), name);
  return static_cast<serve::Outcome>(at - serve::kOutcomes.begin());
}

py::tuple state_of(const Counted& own) {
  return py::make_tuple(own.parts, own.batches, own.outcomes, own.inferences, own.last_ms, own.request, own.queue,
                        own.batch, own.busy_s);
}

Counted from_state(const py::tuple& state) {
  Counted out;
  out.parts = state[0].cast<decltype(out.parts)>();
  out.batches = state[1].cast<decltype(out.batches)>();
  out.outcomes = state[2].cast<decltype(out.outcomes)>();
  out.inferences = state[3].cast<int64_t>();
  out.last_ms = state[4].cast<int64_t>();
  out.request = state[5].cast<serve::Histogram>();
  out.queue = state[6].cast<serve::Histogram>();
  out.batch = state[7].cast<serve::Histogram>();
  out.busy_s = state[8].cast<decltype(out.busy_s)>();
  return out;
}

}  // namespace

void bind_runtime_counters(py::module_& m) {
  py::class_<Counted>(m, "Counted", "Counts, which can be summed and sent to other processes.")
      .def(py::init<>())
      .def("add", &Counted::add, py::arg("more"), "Sums; the last time is the latest.")
      .def(
          "statistics_json",
          [](const Counted& own, const std::string& network, const std::string& version) {
            return statistics_json(network, version, own);
          },
          py::arg("network"), py::arg("version"), "A row of the statistics extension.")
      .def(py::pickle(&state_of, &from_state));
  py::class_<Counters>(m, "Counters", "Of one version in one process. Times are those of time.perf_counter_ns.")
      .def(py::init<>())
      .def("answered", &Counters::answered, py::arg("begun_ns"), py::arg("queue_ns"), py::arg("run_ns"),
           py::arg("inferences"), "A request that succeeded now.")
      .def(
          "refused",
          [](Counters& own, int64_t begun_ns, const std::string& outcome) {
            own.refused(begun_ns, outcome_of(outcome));
          },
          py::arg("begun_ns"), py::arg("outcome"), "A request that ended otherwise now.")
      .def("executed", &Counters::executed, py::arg("inferences"), py::arg("run_ns"), py::arg("busy_us"),
           "One run, and how long its devices worked.")
      .def("counted", &Counters::counted, "A copy of what was counted.");
  m.def("prometheus", &serve::prometheus, py::arg("counted"), py::arg("pending"),
        "All in Prometheus' text format, by (network, version).");
}

}  // namespace hetnn
