// Types and attributes of calls as Python data.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/dims.h"
#include "hetnn/ops/call.h"

namespace hetnn {

/// A read-only array over a tensor's own memory, which it keeps alive.
inline pybind11::array view_of(const Tensor& tensor) {
  namespace py = pybind11;
  const py::capsule owner(new Tensor(tensor), [](void* kept) { delete static_cast<Tensor*>(kept); });
  py::array array(numpy_dtype(tensor.dtype()), tensor.shape(), tensor.data(), owner);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

/// An attribute: element types as their names, tensors as arrays, and dims that are no integers as `sizes` says.
struct AsPython {
  enum class Sizes { dims, texts } sizes = Sizes::dims;

  pybind11::object operator()(const Dim& dim) const {
    if (sizes == Sizes::texts && !dim.is_static()) return pybind11::str(dim.to_string());
    return size_of(dim);
  }
  pybind11::object operator()(DType dtype) const { return pybind11::str(std::string(dtype_name(dtype))); }
  pybind11::object operator()(const Tensor& tensor) const { return view_of(tensor); }
  pybind11::object operator()(const std::vector<Dim>& dims) const {
    pybind11::list list;
    for (const Dim& dim : dims) list.append((*this)(dim));
    return list;
  }
  template <typename T>
  pybind11::object operator()(const T& value) const {
    return pybind11::cast(value);
  }
};

inline pybind11::dict attrs_of(const ops::Attrs& attrs) {
  pybind11::dict out;
  for (const auto& [name, attr] : attrs) out[pybind11::str(name)] = std::visit(AsPython(), attr);
  return out;
}

/// `dtype`, `shape`, and `quant`: None, or `scales`, `zero_points` and `axis`.
inline pybind11::dict dict_of(const ops::Type& type) {
  namespace py = pybind11;
  py::object quant = py::none();
  if (type.quant) {
    quant = py::dict(py::arg("scales") = type.quant->scales, py::arg("zero_points") = type.quant->zero_points,
                     py::arg("axis") = type.quant->axis);
  }
  return py::dict(py::arg("dtype") = std::string(dtype_name(type.dtype)), py::arg("shape") = AsPython()(type.shape),
                  py::arg("quant") = quant);
}

}  // namespace hetnn
