// What numpy calls element types, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>

#include "bindings/arrays.h"

namespace hetnn {

void bind_runtime_element_types(pybind11::module_& m) {
  m.def(
      "numpy_types",
      [] {
        std::map<std::string, pybind11::dtype> out;
        for (const auto& row : kNumpysOwn) out.emplace(dtype_name(row.first), numpy_dtype(row.first));
        return out;
      },
      "The element types that numpy has itself, by hetnn's names.");
  m.def(
      "numpy_type",
      [](const std::string& name) {
        const auto dtype = dtype_from_name(name);
        if (!dtype) throw InvalidModel(text("there is no element type '", name, "'."));
        return numpy_dtype(*dtype);
      },
      pybind11::arg("name"),
      "The numpy dtype of an element type. Unsupported where ml_dtypes, which has it, is absent.");
}

}  // namespace hetnn
