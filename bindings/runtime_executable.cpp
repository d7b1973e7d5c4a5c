// _runtime.Executable: loading and running, without the compiler.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "bindings/arrays.h"
#include "bindings/views.h"
#include "hetnn/base/counted.h"
#include "hetnn/base/progress.h"
#include "hetnn/base/stop.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/disjoint.h"
#include "hetnn/runtime/executable.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using runtime::Executable;
using CodeElsewhere = std::function<std::tuple<std::string, int64_t, py::bytes>(const py::bytes&)>;

// The bytes stay where they are, and keep their size.
program::Blob blob_of(const py::buffer& image) {
  std::shared_ptr<const py::buffer_info> held(new py::buffer_info(image.request()), [](const py::buffer_info* kept) {
    const py::gil_scoped_acquire gil;
    delete kept;
  });
  if (held->ndim != 1 || held->itemsize != 1 || (held->size > 0 && held->strides[0] != 1))
    throw InvalidModel("the image must be bytes, one after another.");
  const std::span bytes(static_cast<const std::byte*>(held->ptr), static_cast<size_t>(held->size));
  return {std::move(held), bytes};
}

// Its notices are Python's warnings.
std::unique_ptr<Executable> warning(std::unique_ptr<Executable> executable) {
  executable->set_notice([](const std::string& notice) {
    const py::gil_scoped_acquire gil;
    if (PyErr_WarnEx(PyExc_RuntimeWarning, notice.c_str(), 1) != 0) throw py::error_already_set();
  });
  return executable;
}

Executable::Elsewhere elsewhere_of(const std::map<std::string, CodeElsewhere>& by_device) {
  Executable::Elsewhere out;
  for (const auto& [device, made] : by_device) {
    out[device] = [made = made](const program::Image& image) {
      const auto [kind, version, code] = made(py::bytes(reinterpret_cast<const char*>(image.data()), image.size()));
      const auto bytes = std::as_bytes(std::span(std::string_view(code)));
      return program::Code{kind, version, {bytes.begin(), bytes.end()}};
    };
  }
  return out;
}

py::list times_of(const std::vector<runtime::SubprogramTime>& times) {
  py::list rows;
  for (const runtime::SubprogramTime& row : times) {
    rows.append(py::dict(py::arg("name") = row.name, py::arg("device") = row.device, py::arg("at") = "local",
                         py::arg("start_us") = row.start_us, py::arg("finish_us") = row.finish_us,
                         py::arg("queue_us") = row.queue_us, py::arg("cycles") = row.cycles,
                         py::arg("fallback") = row.fallback));
  }
  return rows;
}

py::list commands_of(const std::vector<runtime::CommandTime>& times) {
  py::list rows;
  for (const auto& row : times) {
    py::list rivals;
    for (const auto& rival : row.rivals) {
      py::dict told(py::arg("kernel") = rival.kernel);
      if (rival.refusal.empty()) told["predicted_us"] = rival.predicted_us;
      if (!rival.refusal.empty()) told["refusal"] = rival.refusal;
      rivals.append(told);
    }
    rows.append(py::dict(py::arg("node") = row.node, py::arg("kernel") = row.kernel, py::arg("start_us") = row.start_us,
                         py::arg("wall_us") = row.wall_us, py::arg("thread_us") = row.thread_us,
                         py::arg("macs") = row.macs, py::arg("flops") = row.flops, py::arg("bytes") = row.bytes,
                         py::arg("refusals") = row.refusals, py::arg("predicted_us") = row.predicted_us,
                         py::arg("rivals") = rivals));
  }
  return rows;
}

std::vector<runtime::Memory> memory_of(const std::vector<py::array>& arrays) {
  std::vector<runtime::Memory> out;
  out.reserve(arrays.size());
  for (const py::array& array : arrays) out.push_back({static_cast<const std::byte*>(array.data()), array.nbytes()});
  return out;
}

// The arrays of a run: made, or those given.
class Arrays final : public ops::Results {
 public:
  Arrays(size_t count, const py::object& out)
      : made_(out.is_none()),
        arrays_(made_ ? std::vector<py::array>(count) : out.cast<std::vector<py::array>>()),
        ready_(count) {
    if (arrays_.size() != count)
      throw InvalidModel(text("out must hold ", counted(count, "array"), "; got ", arrays_.size(), "."));
  }
  std::byte* allocate(size_t index, DType dtype, std::span<const int64_t> shape) override {
    if (!ready_[index]) {
      const py::gil_scoped_acquire gil;
      ready_[index] = memory(index, dtype, {shape.begin(), shape.end()});
    }
    return ready_[index];
  }
  const std::vector<py::array>& arrays() const { return arrays_; }

 private:
  std::byte* memory(size_t index, DType dtype, const std::vector<int64_t>& shape) {
    py::array& array = arrays_[index];
    if (made_) {
      try {
        array = py::array(numpy_dtype(dtype), shape);
      } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_MemoryError)) throw;
        throw DoesNotFit("there is no memory for the outputs. Give smaller inputs.");
      }
    } else if (dtype_of(array.dtype()) != dtype ||
               std::vector<int64_t>(array.shape(), array.shape() + array.ndim()) != shape ||
               !(array.flags() & py::array::c_style) || !array.writeable()) {
      throw InvalidModel(text("out[", index, "] must be a writeable, contiguous array of ", dtype_name(dtype),
                              to_string(Shape(shape.begin(), shape.end())), "."));
    }
    return static_cast<std::byte*>(array.mutable_data());
  }

  const bool made_;
  std::vector<py::array> arrays_;
  std::vector<std::byte*> ready_;  // null until it was asked for
};

// Runs, without the GIL unless that is sure to take less than handing the GIL over; where it is the main thread's
// doing, Ctrl-C ends it, and what `tell` raises, which is called now and then with the share that is done.
void run_interruptibly(Executable& executable, std::span<const ops::View> inputs, ops::Results& outputs,
                       runtime::RunOptions options, const std::optional<py::typing::Callable<void(double)>>& tell) {
  static const auto main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  std::optional<Stop> interrupt;
  if (!options.stop && (tell || PyThread_get_thread_ident() == main_thread)) {
    interrupt.emplace([&] {
      const py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0) interrupt->request();
    });
    options.stop = &*interrupt;
  }
  std::optional<ProgressScope> scope;
  if (tell && interrupt) {
    scope.emplace([&](std::string_view, double done) {
      const py::gil_scoped_acquire gil;
      if (PyErr_Occurred()) return;
      try {
        (*tell)(done);
      } catch (py::error_already_set& error) {  // threads that wait for one another must all come to their end
        error.restore();
        interrupt->request();
      }
    });
  }
  try {
    std::optional<py::gil_scoped_release> release;
    options.may_wait = [&] {
      if (!release) release.emplace();
    };
    executable.run(inputs, outputs, options);
  } catch (const Error&) {  // Cancelled, or of a device that was interrupted
    if (!PyErr_Occurred()) throw;
  }
  if (PyErr_Occurred()) throw py::error_already_set();  // a handler's, such as KeyboardInterrupt
}

bool is_plain(const py::array& array) {
  return (array.flags() & py::array::c_style) != 0 && has_native_order(array.dtype());
}

py::array plain(const py::array& array) {
  py::array out = py::array::ensure(array, py::array::c_style);
  if (!out) throw DoesNotFit("there is no memory for a dense copy of an input. Give smaller inputs.");
  if (!has_native_order(out.dtype())) out = out.attr("astype")(out.dtype().attr("newbyteorder")("="));
  return out;
}

// Runs on arrays in the model's order; makes the outputs, or writes those given. The times are the caller's to keep, so
// that a run makes none.
std::vector<py::array> run(Executable& executable, std::vector<py::array> inputs, const py::object& out,
                           runtime::RunTimes& times, bool time_commands, std::optional<runtime::Session*> session,
                           bool overlap, std::optional<Stop*> stop,
                           const std::optional<py::typing::Callable<void(double)>>& tell) {
  Arrays outputs(executable.output_count(), out);
  std::vector<ops::View> views = views_of(inputs);
  if (!std::all_of(inputs.begin(), inputs.end(), is_plain)) {
    // Whatever is wrong is told before anything is copied.
    {
      const py::gil_scoped_release release;
      executable.prepare(views, outputs);
    }
    std::transform(inputs.begin(), inputs.end(), inputs.begin(), plain);
    views = views_of(inputs);
  }
  if (!out.is_none()) runtime::refuse_overlap(memory_of(outputs.arrays()), memory_of(inputs));
  run_interruptibly(executable, views, outputs,
                    {.session = session.value_or(nullptr),
                     .overlap = overlap,
                     .stop = stop.value_or(nullptr),
                     .times = &times,
                     .time_commands = time_commands},
                    tell);
  return outputs.arrays();
}

std::string told(std::string json, std::string_view what) {
  if (json == "{}") throw InvalidModel(text("the executable carries no ", what, ". Compile the model again."));
  return json;
}

py::list ports(const program::Program& program, const std::vector<program::Port>& list) {
  py::list out;
  for (const program::Port& port : list) {
    const program::Buffer& buffer = program.buffers[static_cast<size_t>(port.buffer)];
    py::list shape;
    for (const Dim& dim : buffer.shape)
      shape.append(dim.is_static() ? py::object(py::int_(dim.value())) : py::object(py::str(dim.to_string())));
    out.append(py::make_tuple(port.name, std::string(dtype_name(buffer.dtype)), shape));
  }
  return out;
}

}  // namespace

void bind_runtime_executable(py::module_& m) {
  const py::class_<kernels::Machine> processor(m, "Machine",
                                               "A processor's figures, as a measured data sheet has them.");
  py::class_<runtime::RunTimes>(m, "RunTimes", "The times of the last run that filled it, in us from its start.")
      .def(py::init<>())
      .def(
          "subprograms", [](const runtime::RunTimes& times) { return times_of(times.subprograms); },
          "A row a subprogram.")
      .def(
          "bodies", [](const runtime::RunTimes& times) { return times_of(times.bodies); },
          "A row a subprogram that loops repeated, called LOOP/body NAME, for all of its rounds.")
      .def(
          "device_us",
          [](const runtime::RunTimes& times) {
            std::vector<std::pair<double, double>> out;
            for (const auto* rows : {&times.subprograms, &times.bodies}) {
              for (const runtime::SubprogramTime& row : *rows) out.emplace_back(row.simulated_us, row.busy_us);
            }
            return out;
          },
          "Of every subprogram, then of every body: what it took by the clock of a simulated device (0: none is), and "
          "how long its device was at work.")
      .def(
          "subprograms_of_commands",
          [](const runtime::RunTimes& times) {
            std::vector<size_t> out;
            for (const runtime::CommandTime& row : times.commands) out.push_back(row.subprogram);
            return out;
          },
          "Of every row of `commands`, the number of its subprogram.")
      .def(
          "commands", [](const runtime::RunTimes& times) { return commands_of(times.commands); },
          "A row a kernel of the cpu, where they were timed.");
  py::class_<Stop>(m, "Stop", "Ends runs early: when it is asked to, or when the time is up.")
      .def(py::init([](std::optional<double> timeout_s) {
             std::optional<Stop::Clock::time_point> deadline;
             if (timeout_s) {
               if (std::isnan(*timeout_s))
                 throw InvalidModel("timeout_s must be a number of seconds; found nan. Leave it out for no limit.");
               constexpr double kMost = 1e9;  // some thirty years
               deadline =
                   Stop::Clock::now() + std::chrono::duration_cast<Stop::Clock::duration>(
                                            std::chrono::duration<double>(std::clamp(*timeout_s, -kMost, kMost)));
             }
             return std::make_unique<Stop>(deadline);
           }),
           py::arg("timeout_s") = py::none())
      .def("request", &Stop::request, "Runs that have it end with CancelledError.");
  py::class_<runtime::Session>(m, "Session", "The states of one user of a program.")
      .def("reset", &runtime::Session::reset, py::call_guard<py::gil_scoped_release>(),
           "Gives every state its initial value again.")
      .def(
          "read",
          [](runtime::Session& session, const std::string& name) {
            const Tensor value = [&] {
              const py::gil_scoped_release released;
              return session.read(name);
            }();
            py::array out(numpy_dtype(value.dtype()), value.shape());
            if (value.bytes() > 0) std::memcpy(out.mutable_data(), value.data(), value.span().size());
            return out;
          },
          py::arg("name"), "A copy of what a state holds.")
      .def(
          "write",
          [](runtime::Session& session, const std::string& name, const py::array& value) {
            const ops::View view = views_of({value}).front();
            const py::gil_scoped_release released;
            session.write(name, view);
          },
          py::arg("name"), py::arg("value"), "What a state holds in the next run; a contiguous array.");
  py::class_<Executable>(m, "Executable", "A loaded program. Thread-safe.")
      .def(py::init([](const py::buffer& image, int threads, const std::map<std::string, CodeElsewhere>& elsewhere) {
             return warning(
                 std::make_unique<Executable>(blob_of(image), threads, "the executable", elsewhere_of(elsewhere)));
           }),
           py::arg("image"), py::arg("threads") = 0, py::arg("elsewhere") = std::map<std::string, CodeElsewhere>(),
           "`elsewhere` has, by device, what makes kind, version and bytes of code from the image of a subprogram of "
           "it.")
      .def_static(
          "load",
          [](const std::string& path, int threads, bool copy, const std::map<std::string, CodeElsewhere>& elsewhere) {
            return warning(Executable::load(path, threads, copy, elsewhere_of(elsewhere)));
          },
          py::arg("path"), py::arg("threads") = 0, py::arg("copy") = false,
          py::arg("elsewhere") = std::map<std::string, CodeElsewhere>(),
          "Maps a .hetnn file, or copies it; `elsewhere` as there.")
      .def(
          "run", &run, py::arg("inputs"), py::arg("out"), py::arg("times"), py::arg("time_commands") = false,
          py::arg("session") = py::none(), py::arg("overlap") = true, py::arg("stop") = py::none(),
          py::arg("tell") = py::none(),
          "The outputs for contiguous arrays in the model's order. Fills `times`. `tell` is called while it lasts with "
          "what of it is done, from 0 to 1; what it raises ends the run.")
      .def(
          "save", [](Executable& e, const std::string& path) { program::write_file(path, e.image()); }, py::arg("path"),
          py::call_guard<py::gil_scoped_release>(), "Writes the image, with all shapes compiled so far.")
      .def(
          "image",
          [](Executable& e) {
            const program::Image image = [&] {
              const py::gil_scoped_release released;  // it waits for a run of a model with states
              return e.image();
            }();
            return py::bytes(reinterpret_cast<const char*>(image.data()), image.size());
          },
          "The image as bytes.")
      .def(
          "set_specializer",
          [](Executable& e,
             const std::function<std::pair<py::bytes, std::string>(const Bindings&, int32_t, int64_t)>& compile) {
            e.set_specializer([compile](const Bindings& bindings, int32_t body, int64_t weights_bytes) {
              const py::gil_scoped_acquire gil;
              const auto [image, refused] = compile(bindings, body, weights_bytes);
              const std::string_view view(image);
              const auto bytes = std::as_bytes(std::span(view.data(), view.size()));
              return Executable::Specialized{program::Image(bytes.begin(), bytes.end()), refused};
            });
          },
          py::arg("compile"),
          "`compile(bindings, body, weights_bytes)` returns the image of what code for those sizes, of the model (-1) "
          "or of a body, adds to the weights there are, and why devices cannot run some of it, or empty text.")
      .def("session", &Executable::session, "States for one more user.")
      .def_property_readonly("own_session", &Executable::own_session, py::return_value_policy::reference_internal,
                             "The states of runs without a session.")
      .def("keep_at_most", &Executable::keep_at_most, py::arg("bytes"), py::call_guard<py::gil_scoped_release>(),
           "Bounds the memory that idle runs keep for those to come; one run's is always kept.")
      .def("limit_runs", &Executable::limit_runs, py::arg("most"), py::arg("refuse"),
           "Bounds the runs at one time (0: no bound): more wait for their turn, or are refused with Unavailable.")
      .def_property_readonly(
          "depends_on",
          [](const Executable& e) {
            std::vector<std::vector<int32_t>> out;
            for (const program::Subprogram& subprogram : e.program()->subprograms) out.push_back(subprogram.depends_on);
            return out;
          },
          "Of every subprogram, the earlier ones that it waits for.")
      .def_property_readonly(
          "code_kinds",
          [](const Executable& e) {
            std::vector<std::string> out;
            for (const program::Subprogram& subprogram : e.program()->subprograms) out.push_back(subprogram.code.kind);
            return out;
          },
          "Of every subprogram, the kind of device that its code is for.")
      .def_property_readonly(
          "devices",
          [](const Executable& e) {
            std::vector<std::string> out;
            for (const program::Subprogram& subprogram : e.program()->subprograms) out.push_back(subprogram.device);
            return out;
          },
          "Of every subprogram, the name of the device that it runs on.")
      .def("kept_bytes", &Executable::kept_bytes, py::call_guard<py::gil_scoped_release>(),
           "Bytes of memory that idle runs keep.")
      .def_property_readonly(
          "states",
          [](const Executable& e) {
            std::vector<std::string> out;
            for (const program::State& state : e.program()->states) out.push_back(state.name);
            return out;
          },
          "Names of what the model keeps from run to run.")
      .def_property_readonly(
          "signature_json", [](const Executable& e) { return e.program()->signature_json; },
          "How the model's own caller passes inputs and gets outputs, as JSON text; empty where as lists.")
      .def_property_readonly("report_json",
                             [](const Executable& e) { return told(e.program()->report_json.read(), "report"); })
      .def_property_readonly("target_json",
                             [](const Executable& e) { return told(e.program()->target_json, "target"); })
      .def_property_readonly(
          "inputs", [](const Executable& e) { return ports(*e.program(), e.program()->inputs); },
          "(name, dtype, shape) of every input.")
      .def_property_readonly(
          "outputs", [](const Executable& e) { return ports(*e.program(), e.program()->outputs); },
          "(name, dtype, shape) of every output.")
      .def_property_readonly(
          "hints",
          [](const Executable& e) {
            Bindings out;
            for (const Symbol& symbol : e.program()->symbols) out[symbol.name] = symbol.hint;
            return out;
          },
          "The example's value of every symbol.")
      .def(
          "example_shapes",
          [](const Executable& e) {
            const auto program = e.program();
            Bindings hints;
            for (const Symbol& symbol : program->symbols) hints[symbol.name] = symbol.hint;
            std::map<std::string, std::vector<int64_t>> out;
            for (const program::Port& port : program->inputs)
              out[port.name] = evaluate(program->buffers[static_cast<size_t>(port.buffer)].shape, hints);
            return out;
          },
          "The inputs' shapes at the example's sizes, by name.")
      .def_property_readonly("threads", &Executable::threads)
      .def("arena_bytes", &Executable::arena_bytes, py::arg("bindings"), py::call_guard<py::gil_scoped_release>(),
           "Bytes of the arena for these sizes.")
      .def(
          "described",
          [](Executable& executable, const Bindings& bindings, const std::optional<kernels::Machine>& machine) {
            std::vector<runtime::CommandTime> rows;
            {
              const py::gil_scoped_release released;
              rows = executable.described(bindings, machine ? *machine : kernels::default_machine());
            }
            return commands_of(rows);
          },
          py::arg("bindings"), py::arg("machine") = py::none(),
          "The rows of a run's `commands` without their times, for these sizes; what is predicted is for the machine "
          "that kernels are chosen for, or for another one.");
}

}  // namespace hetnn
