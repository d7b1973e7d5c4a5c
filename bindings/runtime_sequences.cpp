// _runtime.Sequences and OpenSequence: the states that clients keep from step to step.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/runtime_serve.h"
#include "hetnn/serve/sequences.h"

namespace py = pybind11;

namespace hetnn {

using serve::Sequence;
using serve::Sequences;

void bind_runtime_sequences(py::module_& m) {
  py::class_<Sequence, std::shared_ptr<Sequence>>(m, "OpenSequence", "A client's sequence, and its states.")
      .def_property_readonly(
          "runner", [](const Sequence& own) { return *static_cast<const py::object*>(own.runner.get()); },
          "What it began with.");
  py::class_<Sequences>(m, "Sequences",
                        "Those that have begun, by network and name. Times are of time.perf_counter_ns.")
      .def(py::init<>())
      .def(
          "begin",
          [](Sequences& own, const Request& request, const py::object& runner, std::string version,
             const runtime::Executable& executable,
             int64_t now_ns) { return own.begin(request, kept_alive(runner), std::move(version), executable, now_ns); },
          py::arg("request"), py::arg("runner"), py::arg("version"), py::arg("executable"), py::arg("now_ns"),
          "The request's sequence anew. Unavailable when as many as may are open.")
      .def(
          "find", [](Sequences& own, const Request& request, int64_t now_ns) { return own.find(request, now_ns); },
          py::arg("request"), py::arg("now_ns"),
          "InvalidModel when it has not begun here, or runs on another version than is asked for.")
      .def(
          "end", [](Sequences& own, const Request& request) { own.end(request); }, py::arg("request"),
          "Forgets the request's sequence.")
      .def("forget", &Sequences::forget, py::arg("network"), "Forgets all of a network.")
      .def("forget_idle", &Sequences::forget_idle, py::arg("now_ns"), "Forgets those that nobody continues.")
      .def("__len__", &Sequences::size)
      .def_property_readonly_static("idle_us", [](const py::object&) { return Sequences::kIdle_ns / 1000; });
}

}  // namespace hetnn
