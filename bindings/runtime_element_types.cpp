// What numpy calls element types, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>

#include "bindings/arrays.h"
#include "hetnn/base/dtype_names.h"
#include "hetnn/base/stored.h"

namespace hetnn {
namespace {

/// A row of the table as Python sees it.
struct ElementType {
  std::string name;
  int bits;
  bool is_stored;
  std::string numpy, torch, onnx, tflite, c;
};

std::vector<ElementType> element_types() {
  std::vector<ElementType> out;
  for (const DType dtype : kAllDTypes) {
    const auto& [torch, onnx, tflite, c] = dtype_names(dtype);
    out.push_back({std::string(dtype_name(dtype)), dtype_bits(dtype), is_stored(dtype), numpy_name(dtype),
                   std::string(torch), std::string(onnx), std::string(tflite), std::string(c)});
  }
  return out;
}

}  // namespace

void bind_runtime_element_types(pybind11::module_& m) {
  pybind11::class_<ElementType>(m, "ElementType", "An element type and what others call it; \"\" where they lack it.")
      .def_readonly("name", &ElementType::name)
      .def_readonly("bits", &ElementType::bits, "Of an element; a stored one takes a byte.")
      .def_readonly("is_stored", &ElementType::is_stored, "Whether nothing computes in it.")
      .def_readonly("numpy", &ElementType::numpy, "In numpy or ml_dtypes.")
      .def_readonly("torch", &ElementType::torch)
      .def_readonly("onnx", &ElementType::onnx, "In TensorProto.DataType.")
      .def_readonly("tflite", &ElementType::tflite, "In the schema's TensorType.")
      .def_readonly("c", &ElementType::c, "In hetnn.h.");
  m.def("element_types", &element_types, "All, in the order of their numbers.");
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
