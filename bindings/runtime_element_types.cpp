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
        for (const DType dtype : kAllDTypes) {
          if (is_numpys_own(dtype)) out.emplace(dtype_name(dtype), numpy_dtype(dtype));
        }
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
