// numpy arrays as tensors and back.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <string>

#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/tensor.h"

namespace hetnn {

inline bool has_native_order(const pybind11::dtype& dtype) {
  return dtype.byteorder() == '=' || dtype.byteorder() == '|';
}

/// The element type of a numpy dtype; InvalidModel when hetnn has none, or none in that byte order.
inline DType dtype_of(const pybind11::dtype& dtype) {
  if (!has_native_order(dtype)) {
    throw InvalidModel(text("an array of ", pybind11::str(dtype.attr("str")).cast<std::string>(),
                            " has the other byte order; hetnn takes this machine's. Call "
                            ".astype(a.dtype.newbyteorder('=')) on it."));
  }
  const char kind = dtype.kind();
  const auto size = dtype.itemsize();
  if (kind == 'f') {
    if (size == 4) return DType::f32;
    if (size == 8) return DType::f64;
    if (size == 2) return DType::f16;
  } else if (kind == 'i') {
    if (size == 1) return DType::i8;
    if (size == 2) return DType::i16;
    if (size == 4) return DType::i32;
    if (size == 8) return DType::i64;
  } else if (kind == 'u' && size == 1) {
    return DType::u8;
  } else if (kind == 'b') {
    return DType::boolean;
  }
  throw InvalidModel(
      text("arrays of ", pybind11::str(static_cast<pybind11::object>(dtype)).cast<std::string>(),
           " are not supported; hetnn has f32, f64, f16, i8, u8, i16, i32, i64 and bool. Convert the array."));
}

/// The numpy dtype of an element type. Unsupported for bf16, which numpy lacks.
inline pybind11::dtype numpy_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return pybind11::dtype("float32");
    case DType::f64:
      return pybind11::dtype("float64");
    case DType::f16:
      return pybind11::dtype("float16");
    case DType::i8:
      return pybind11::dtype("int8");
    case DType::u8:
      return pybind11::dtype("uint8");
    case DType::i16:
      return pybind11::dtype("int16");
    case DType::i32:
      return pybind11::dtype("int32");
    case DType::i64:
      return pybind11::dtype("int64");
    case DType::boolean:
      return pybind11::dtype("bool");
    case DType::bf16:
      break;
  }
  throw Unsupported("numpy has no bf16. Cast the value to f32 in the model.");
}

/// A tensor that shares the memory of a contiguous array and keeps it alive; another array is copied first.
inline Tensor tensor_of(const pybind11::array& array) {
  namespace py = pybind11;
  py::array dense = py::array::ensure(array, py::array::c_style);
  // The tensor may die on a thread without the GIL.
  std::shared_ptr<const void> owner(new py::object(dense), [](const void* kept) {
    const py::gil_scoped_acquire gil;
    delete static_cast<const py::object*>(kept);
  });
  std::vector<int64_t> shape(dense.shape(), dense.shape() + dense.ndim());
  return {dtype_of(dense.dtype()), std::move(shape), std::move(owner), static_cast<const std::byte*>(dense.data())};
}

/// A new array with a copy of the tensor's values.
inline pybind11::array array_of(const Tensor& tensor) {
  return {numpy_dtype(tensor.dtype()), tensor.shape(), tensor.data()};
}

}  // namespace hetnn
