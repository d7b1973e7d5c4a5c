// _runtime.Regions: shared memory that clients register, which requests name in place of values.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>

#include "bindings/runtime_serve.h"
#include "hetnn/base/error.h"
#include "hetnn/serve/regions.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using serve::Region;
using serve::Regions;

std::string key_of(const py::str& key) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
  if (data) return {data, static_cast<size_t>(size)};
  PyErr_Clear();
  throw InvalidModel("the key of a shared memory region holds half of a surrogate pair, which no name may.");
}

py::list status(const Regions& regions, const std::string& name) {
  py::list out;
  for (const Region& row : regions.status(name)) {
    out.append(py::dict(py::arg("name") = row.name, py::arg("key") = row.key, py::arg("offset") = row.offset,
                        py::arg("byte_size") = row.bytes));
  }
  return out;
}

}  // namespace

void bind_runtime_regions(py::module_& m) {
  py::class_<Regions>(m, "Regions", "Registered regions of shared memory, by name.")
      .def(py::init<>())
      .def(
          "register",
          [](Regions& own, std::string name, const py::str& key, uint64_t offset, uint64_t byte_size) {
            own.add({std::move(name), key_of(key), offset, byte_size});
          },
          py::arg("name"), py::arg("key"), py::arg("offset"), py::arg("byte_size"),
          "InvalidModel when the name is taken, or the memory is not there or shorter.")
      .def("unregister", &Regions::remove, py::arg("name"), py::call_guard<py::gil_scoped_release>(),
           "Forgets a region, or all for the name ''. A name that is not there is no error.")
      .def("status", &status, py::arg("name"),
           "`name`, `key`, `offset`, `byte_size` of a region, or of all for the name ''.")
      .def(
          "read_inputs",
          [](const Regions& own, Request& request) {
            if (std::ranges::none_of(request.inputs, [](const serve::Given& each) { return each.shared.has_value(); }))
              return;
            const py::gil_scoped_release release;
            own.read_inputs(request);
          },
          py::arg("request"), "Gives it the inputs that lie here.")
      .def(
          "write_outputs",
          [](const Regions& own, const serve::Bound& bound, const Outputs& outputs) {
            if (std::ranges::none_of(bound.outputs, [](const auto& each) { return each.wanted.shared.has_value(); }))
              return;
            const py::gil_scoped_release release;
            own.write_outputs(bound, outputs.tensors);
          },
          py::arg("bound"), py::arg("outputs"), "Writes those that are wanted here.");
}

}  // namespace hetnn
