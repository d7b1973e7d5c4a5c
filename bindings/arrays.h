// numpy arrays as tensors and back.
#pragma once

#include <pybind11/numpy.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetnn/base/bool_bytes.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/tensor.h"

namespace hetnn {

/// Whether numpy has the type itself; others are of ml_dtypes.
inline bool is_numpys_own(DType dtype) { return !is_stored(dtype) && dtype != DType::bf16; }

/// Of numpy's own types, by the number that it gives them: asking for names takes longer than a small network runs.
inline const auto& dtypes_by_number() {
  static const auto rows = [] {
    std::array<std::optional<DType>, 32> out;
    for (const DType dtype : kAllDTypes) {
      if (is_numpys_own(dtype)) out.at(static_cast<size_t>(pybind11::dtype(numpy_name(dtype)).num())) = dtype;
    }
    return out;
  }();
  return rows;
}

/// Of others those that were met, by the number that numpy gave them when they came. Touched with the GIL alone.
inline std::vector<std::pair<int, DType>>& met_by_number() {
  static std::vector<std::pair<int, DType>> rows;
  return rows;
}

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
  const auto number = static_cast<size_t>(dtype.num());
  if (number < dtypes_by_number().size() && dtypes_by_number()[number]) return *dtypes_by_number()[number];
  for (const auto& [met, each] : met_by_number()) {
    if (met == dtype.num()) return each;
  }
  const auto name = dtype.attr("name").cast<std::string>();
  std::string known;
  for (const DType each : kAllDTypes) {
    if (name == numpy_name(each)) {
      met_by_number().emplace_back(dtype.num(), each);
      return each;
    }
    known += (known.empty() ? "" : ", ") + std::string(dtype_name(each));
  }
  throw InvalidModel(text("arrays of ", pybind11::str(static_cast<pybind11::object>(dtype)).cast<std::string>(),
                          " are not supported; hetnn has ", known, ". Convert the array."));
}

/// The numpy dtype of an element type. Unsupported for those of ml_dtypes where that is not installed.
inline pybind11::dtype numpy_dtype(DType dtype) {
  if (is_numpys_own(dtype)) {
    const auto& numbers = dtypes_by_number();
    return pybind11::dtype(static_cast<int>(std::find(numbers.begin(), numbers.end(), dtype) - numbers.begin()));
  }
  for (const auto& [number, met] : met_by_number()) {
    if (met == dtype) return pybind11::dtype(number);
  }
  try {
    auto out = pybind11::dtype::from_args(pybind11::module_::import("ml_dtypes").attr(numpy_name(dtype)));
    met_by_number().emplace_back(out.num(), dtype);
    return out;
  } catch (const pybind11::error_already_set&) {
    throw Unsupported(
        text("numpy has no ", dtype_name(dtype), ". Install ml_dtypes, or cast the value to f32 in the model."));
  }
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
  const DType dtype = dtype_of(dense.dtype());
  const auto* bytes = static_cast<const std::byte*>(dense.data());
  if (dtype == DType::boolean && first_not_bool({bytes, static_cast<size_t>(dense.size())}))
    throw InvalidModel("an array of bool has a byte that is neither 0 nor 1. Compare with 0 to make bools.");
  return {dtype, std::move(shape), std::move(owner), bytes};
}

/// A new array with a copy of the tensor's values.
inline pybind11::array array_of(const Tensor& tensor) {
  return {numpy_dtype(tensor.dtype()), tensor.shape(), tensor.data()};
}

}  // namespace hetnn
