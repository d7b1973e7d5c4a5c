// numpy arrays as views of their memory.
#pragma once

#include <pybind11/numpy.h>

#include <span>
#include <vector>

#include "bindings/arrays.h"
#include "hetnn/ops/meaning.h"

namespace hetnn {

inline std::vector<ops::View> views_of(const std::vector<pybind11::array>& inputs) {
  std::vector<ops::View> out;
  out.reserve(inputs.size());
  for (const pybind11::array& array : inputs) {
    // Of the other byte order it is turned round when it is read.
    pybind11::dtype dtype = array.dtype();
    if (!has_native_order(dtype)) dtype = dtype.attr("newbyteorder")("=").cast<pybind11::dtype>();
    const std::span<const int64_t> shape(array.shape(), static_cast<size_t>(array.ndim()));
    out.emplace_back(dtype_of(dtype), shape, static_cast<const std::byte*>(array.data()));
  }
  return out;
}

}  // namespace hetnn
