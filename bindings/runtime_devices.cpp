// _runtime.register_device: kinds of device that run in Python, as devices of the C interface.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "hetnn/base/counted.h"
#include "hetnn/capi/hetnn.h"
#include "hetnn/runtime/executor.h"

namespace py = pybind11;

namespace hetnn {
namespace {

// Leaves the text of what Python raised. What hetnn has no kind of error for is the device's own failure.
hetnn_status failed(const py::error_already_set& error, const std::string& device) {
  const py::object errors = py::module_::import("hetnn.errors");
  const auto message = py::str(error.value()).cast<std::string>();
  constexpr std::pair<const char*, hetnn_status> kKinds[] = {{"InvalidModel", HETNN_INVALID_MODEL},
                                                             {"Unsupported", HETNN_UNSUPPORTED},
                                                             {"DoesNotFit", HETNN_DOES_NOT_FIT},
                                                             {"Unavailable", HETNN_UNAVAILABLE}};
  for (const auto& [kind, status] : kKinds) {
    if (error.matches(errors.attr(kind))) return hetnn_fail(status, message.c_str());
  }
  const auto type = py::str(error.type().attr("__name__")).cast<std::string>();
  return hetnn_fail(HETNN_UNAVAILABLE, text("device '", device, "': ", type, ": ", message).c_str());
}

// Runs `body` with the GIL and turns what it throws into a status. What is no failure of the device (Ctrl-C) stays the
// thread's pending exception, where Python called it: the run ends with that (run_interruptibly).
template <typename Body>
hetnn_status guarded(const std::string& device, const Body& body) {
  const bool called_by_python = PyGILState_GetThisThreadState() != nullptr;
  const py::gil_scoped_acquire gil;
  try {
    body();
    return HETNN_OK;
  } catch (py::error_already_set& error) {
    const hetnn_status status = failed(error, device);
    if (called_by_python && !error.matches(PyExc_Exception)) error.restore();
    return status;
  } catch (const InvalidModel& error) {
    return hetnn_fail(HETNN_INVALID_MODEL, error.what());
  } catch (const std::exception& error) {
    return hetnn_fail(HETNN_UNAVAILABLE, text("device '", device, "': ", error.what()).c_str());
  }
}

DType dtype_of(const hetnn_port& port) { return static_cast<DType>(port.dtype); }

// (name, element type, shape) of each; sizes that are open are None.
py::list described(const hetnn_port* ports, size_t count) {
  py::list out;
  for (const hetnn_port& port : std::span(ports, count)) {
    py::list shape;
    for (const int64_t dim : std::span(port.dims, static_cast<size_t>(port.rank)))
      shape.append(dim < 0 ? py::object(py::none()) : py::object(py::int_(dim)));
    out.append(py::make_tuple(port.name, std::string(dtype_name(dtype_of(port))), py::tuple(shape)));
  }
  return out;
}

struct Loaded {
  std::string device, subgraph;
  size_t input_count = 0, output_count = 0;
  py::object run;
};

struct Visit {
  Loaded* loaded = nullptr;
  const hetnn_port *inputs = nullptr, *outputs = nullptr;
  std::vector<const void*> from = {};
  std::vector<py::array> results = {};

  void compute() {
    py::list arrays;
    for (size_t k = 0; k < from.size(); ++k) {
      const hetnn_port& port = inputs[k];
      // Read where it lies: the memory is the run's, and stays until the call returns.
      const std::vector<int64_t> shape(port.dims, port.dims + port.rank);
      py::array array(numpy_dtype(dtype_of(port)), shape, from[k], py::capsule(this, [](void*) {}));
      array.attr("setflags")(py::arg("write") = false);
      arrays.append(std::move(array));
    }
    const auto given = loaded->run(arrays).cast<py::sequence>();
    if (given.size() != loaded->output_count) {
      throw InvalidModel(text("device '", loaded->device, "' returned ", counted(given.size(), "array"),
                              " for subgraph '", loaded->subgraph, "', which has ",
                              counted(loaded->output_count, "output"), "."));
    }
    results.clear();
    for (size_t k = 0; k < loaded->output_count; ++k) {
      const hetnn_port& port = outputs[k];
      py::array array = py::array::ensure(given[k], py::array::c_style);
      const std::vector<int64_t> wanted(port.dims, port.dims + port.rank);
      const bool fits = array && hetnn::dtype_of(array.dtype()) == dtype_of(port) &&
                        std::equal(wanted.begin(), wanted.end(), array.shape(), array.shape() + array.ndim());
      if (!fits) {
        throw InvalidModel(
            text("device '", loaded->device, "' returned ",
                 array ? py::str(array.dtype()).cast<std::string>() + py::str(array.attr("shape")).cast<std::string>()
                       : "what is no array",
                 " as '", port.name, "', which is ", dtype_name(dtype_of(port)), " of shape ",
                 py::str(py::tuple(py::cast(wanted))).cast<std::string>(), "."));
      }
      results.push_back(std::move(array));
    }
  }
};

Loaded* loaded_of(void* pointer) { return static_cast<Loaded*>(pointer); }
Visit* visit_of(void* pointer) { return static_cast<Visit*>(pointer); }

hetnn_status load(void* user, const hetnn_code* code, void** loaded) {
  return guarded(code->device, [&] {
    auto made = std::make_unique<Loaded>(
        Loaded{code->device, code->subgraph, code->input_count, code->output_count, py::object()});
    made->run = (*static_cast<py::object*>(user))(
        code->device, code->version, py::bytes(static_cast<const char*>(code->bytes), code->byte_count),
        described(code->inputs, code->input_count), described(code->outputs, code->output_count));
    *loaded = made.release();
  });
}

void unload(void* loaded) {
  const py::gil_scoped_acquire gil;
  delete loaded_of(loaded);
}

hetnn_status open(void* loaded, const hetnn_port* inputs, const hetnn_port* outputs, void** visit) {
  return guarded(loaded_of(loaded)->device, [&] { *visit = new Visit{loaded_of(loaded), inputs, outputs}; });
}

void close(void* visit) {
  const py::gil_scoped_acquire gil;
  delete visit_of(visit);
}

hetnn_status upload(void* pointer, const hetnn_tensor* inputs) {
  Visit& visit = *visit_of(pointer);
  visit.from.clear();
  for (size_t k = 0; k < visit.loaded->input_count; ++k) visit.from.push_back(inputs[k].data);
  return HETNN_OK;
}

// On the thread that asks, which would only wait: devices that work at once are asked by a thread each, and handing
// over to another one costs more than a small subgraph.
hetnn_status start(void* pointer, hetnn_event* done) {
  Visit& visit = *visit_of(pointer);
  const hetnn_status status = guarded(visit.loaded->device, [&] { visit.compute(); });
  if (status == HETNN_OK) hetnn_event_set(done, HETNN_OK, nullptr);
  return status;
}

hetnn_status download(void* pointer, const hetnn_tensor* outputs) {
  Visit& visit = *visit_of(pointer);
  for (size_t k = 0; k < visit.results.size(); ++k) {
    const auto bytes = static_cast<size_t>(visit.results[k].nbytes());
    if (bytes) std::memcpy(outputs[k].data, visit.results[k].data(), bytes);
  }
  return HETNN_OK;
}

}  // namespace

void bind_runtime_devices(py::module_& m) {
  m.def("device_kinds", &runtime::executor_kinds, "The kinds of device that run here: built in, and registered.");
  m.def(
      "register_device",
      [](const std::string& kind, py::object open_code) {
        hetnn_device device = {};
        device.size = sizeof(device);
        device.kind = kind.c_str();
        device.user = new py::object(std::move(open_code));  // kept for good, as the kind is
        device.load = load;
        device.unload = unload;
        device.open = open;
        device.close = close;
        device.upload = upload;
        device.start = start;
        device.download = download;
        if (hetnn_register_device(&device) != HETNN_OK) throw InvalidModel(hetnn_error_message());
      },
      py::arg("kind"), py::arg("open"),
      "Adds a kind of device: `open(device, version, code, inputs, outputs)`, with (name, dtype, shape) a port, gives "
      "a "
      "function of a list of arrays that returns another. Executables loaded from now on know it.");
  m.def(
      "set_device_finder",
      [](py::object finder) {
        const auto* kept = new py::object(std::move(finder));
        runtime::set_executor_finder([kept](const std::string& kind) {
          const py::gil_scoped_acquire gil;
          (*kept)(kind);
        });
      },
      py::arg("finder"), "Called with a kind of device that is not registered, to register it.");
}

}  // namespace hetnn
