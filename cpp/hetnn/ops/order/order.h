// What operators that order elements share: NaN counts as larger than all numbers.
#pragma once

#include "hetnn/ops/lanes.h"

namespace hetnn::ops {

template <typename W>
bool less(W a, W b) {
  return a < b || (a == a && b != b);
}

/// Types of `values` and `indices`, x's shape but for `size` elements along attribute `axis`.
inline std::vector<Type> infer_ordered(const Call& call, const Dim& size) {
  Shape y = call.input(0).shape;
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  if (!y.empty()) y[static_cast<size_t>(axis)] = size;
  return {{call.input(0).dtype, y}, {DType::i64, y}};
}

/// Whether torch sorts by digits, which keeps the order of equals.
inline bool is_sorted_by_digits(DType dtype, std::span<const int64_t> shape, bool descending) {
  constexpr int64_t kMany = 32768;
  return !descending && shape.size() == 1 && shape[0] >= kMany && is_integer(dtype);
}

/// Number of elements along attribute `axis`; 1 for rank 0.
inline Dim axis_size(const Call& call) {
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  return call.input(0).shape.empty() ? Dim(1) : call.input(0).shape[static_cast<size_t>(axis)];
}

}  // namespace hetnn::ops
