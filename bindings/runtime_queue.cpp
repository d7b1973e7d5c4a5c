// _runtime.RunQueue and Ends: requests that run on threads of their own, which never need the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "bindings/runtime_serve.h"
#include "hetnn/runtime/run_queue.h"
#include "hetnn/serve/sequences.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using runtime::Ends;
using runtime::RunQueue;

// Its threads may want the GIL before they end, for warnings.
struct JoinedWithoutGil {
  void operator()(RunQueue* queue) const {
    const py::gil_scoped_release release;
    delete queue;
  }
};

// An exception to be raised where somebody waits for it.
struct Failure {
  std::exception_ptr error;
};

py::list taken(Ends& ends) {
  py::list out;
  for (runtime::Ended& ended : ends.take()) {
    py::object outputs = py::none();
    if (ended.error) {
      outputs = py::cast(Failure{ended.error});
    } else if (!ended.dropped) {
      outputs = py::cast(Outputs{std::move(ended.outputs)});
    }
    out.append(py::make_tuple(ended.request.number, std::move(outputs), ended.started_ns, ended.run_ns, ended.run_rows,
                              ended.run_rows > 0 ? py::cast(ended.busy_us) : py::none()));
  }
  return out;
}

}  // namespace

void bind_runtime_queue(py::module_& m) {
  py::class_<Failure>(m, "Failure", "What a run threw.")
      .def(
          "throw", [](const Failure& failure) { std::rethrow_exception(failure.error); }, "Raises it.");
  py::class_<Ends>(m, "Ends", "Where requests of queues end.")
      .def(py::init<int>(), py::arg("descriptor"),
           "Eight bytes are written to the descriptor when the first of some requests has ended.")
      .def("take", &taken,
           "(number, outputs, started_ns, run_ns, rows of the whole run or 0, (device, us)) of each since the last "
           "call; the outputs of one that failed are a Failure, of one that was dropped None.");
  py::class_<RunQueue, std::unique_ptr<RunQueue, JoinedWithoutGil>>(
      m, "RunQueue", "Requests by priority, and the threads that run them.")
      .def(py::init([](runtime::Executable& executable, Ends& ends, int threads, int cores, int64_t most_rows,
                       int64_t delay_us, bool own_states) {
             return std::unique_ptr<RunQueue, JoinedWithoutGil>(new RunQueue(executable, ends,
                                                                             {.threads = threads,
                                                                              .cores = cores,
                                                                              .most_rows = most_rows,
                                                                              .delay_ns = delay_us * 1000,
                                                                              .own_states = own_states}));
           }),
           py::arg("executable"), py::arg("ends"), py::arg("threads"), py::arg("cores"), py::arg("most_rows"),
           py::arg("delay_us"), py::arg("own_states"), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(),
           "As many threads run requests, and share so many cores (0: each run has all that its executable has). With "
           "most_rows above 1, requests share a run; own_states: one without a session begins with the initial "
           "states.")
      .def(
          "submit",
          [](RunQueue& queue, int64_t number, const serve::Bound& bound, int64_t priority, int64_t arrived_ns,
             int64_t rows, std::optional<serve::Sequence*> sequence) {
            return queue.submit_asleep({.number = number,
                                        .priority = priority,
                                        .arrived_ns = arrived_ns,
                                        .rows = rows,
                                        .session = sequence ? (*sequence)->session.get() : nullptr,
                                        .inputs = bound.inputs});
          },
          py::arg("number"), py::arg("bound"), py::arg("priority"), py::arg("arrived_ns"), py::arg("rows"),
          py::arg("sequence") = py::none(),
          "False once it is closed, but for steps of a sequence with states, which outlives them. A thread that sleeps "
          "takes it at the next wake().")
      .def("wake", &RunQueue::wake, "For the requests that were submitted since the last one.")
      .def("drop", &RunQueue::drop, py::arg("number"), "Takes back a request that still waits.")
      .def("close", &RunQueue::close, "Lets what waits be run, and takes no more.");
}

}  // namespace hetnn
