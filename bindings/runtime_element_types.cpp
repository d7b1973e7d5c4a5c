// What numpy calls element types, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "hetnn/base/dtype_names.h"
#include "hetnn/base/stored.h"

namespace hetnn {
namespace {

namespace py = pybind11;

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

// What a tensor of torch answers. Throws what it raises.
class Asked {
 public:
  explicit Asked(py::handle tensor) : tensor_(tensor) {}
  py::object attribute(const py::str& name) const { return checked(PyObject_GetAttr(tensor_.ptr(), name.ptr())); }
  py::object call(const py::str& name) const { return checked(PyObject_CallMethodNoArgs(tensor_.ptr(), name.ptr())); }

 private:
  static py::object checked(PyObject* value) {
    if (!value) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
  }
  py::handle tensor_;
};

// It is asked for no more than reading it takes: small networks take less time than its own `numpy`.
py::object array_over(const py::handle& tensor, const py::dtype& dtype) {
  struct Names {
    py::str is_cpu = interned("is_cpu"), is_contiguous = interned("is_contiguous"), is_neg = interned("is_neg"),
            requires_grad = interned("requires_grad"), data_ptr = interned("data_ptr"), shape = interned("shape");
    static py::str interned(const char* name) {
      return py::reinterpret_steal<py::str>(PyUnicode_InternFromString(name));
    }
  };
  // Never freed: the interpreter ends before static objects do.
  static const Names& names = *new Names;
  try {
    const Asked asked(tensor);
    if (asked.attribute(names.is_cpu).ptr() != Py_True || asked.call(names.is_contiguous).ptr() != Py_True ||
        asked.call(names.is_neg).ptr() != Py_False || asked.attribute(names.requires_grad).ptr() != Py_False)
      return py::none();
    void* const at = PyLong_AsVoidPtr(asked.call(names.data_ptr).ptr());
    const auto shape = py::reinterpret_borrow<py::tuple>(asked.attribute(names.shape));
    std::vector<py::ssize_t> sizes;
    sizes.reserve(shape.size());
    for (const py::handle size : shape) sizes.push_back(PyLong_AsSsize_t(size.ptr()));
    if (PyErr_Occurred()) throw py::error_already_set();
    return py::array(dtype, std::move(sizes), at, tensor);
  } catch (const py::error_already_set&) {  // such as one without memory of its own; the way that takes longer says why
    return py::none();
  }
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
  m.def("array_over", &array_over, pybind11::arg("tensor"), pybind11::arg("dtype"),
        "The memory of a contiguous tensor of torch on the CPU as an array of that type; None of any other.");
}

}  // namespace hetnn
