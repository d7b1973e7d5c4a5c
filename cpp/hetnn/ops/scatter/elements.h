// What operators share that address single elements along an axis by an index of their own.
#pragma once

#include <vector>

#include "hetnn/ops/lanes.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/scatter/positions.h"

namespace hetnn::ops {

/// Whether a value may hold indices: integers that stand for themselves.
inline bool holds_indices(const Type& type) {
  return (type.dtype == DType::i64 || type.dtype == DType::i32) && !type.quant;
}

/// Fails with `<op>_c1` unless input 1 does.
inline void check_indices(const Call& call) {
  const Type& indices = call.input(1);
  if (holds_indices(indices)) return;
  fail(call, text(call.op->name, "_c1"), text("indices must be i64 or i32; got ", to_string(indices), ". Cast them."));
}

/// Elements of x along attribute `axis`; 1 for rank 0.
inline int64_t size_along(const Call& call, const View& x) {
  const int axis = axis_of(call, call.integer("axis"), x.rank());
  return x.rank() == 0 ? 1 : x.shape[static_cast<size_t>(axis)];
}

/// Fails with `<op>_c3` for an index outside the axis.
inline void check_elements(const Call& call, std::span<const View> inputs) {
  check_positions(call, 3, inputs[1], size_along(call, inputs[0]), call.flag("from_end"));
}

/// The indices, which were checked, each in [0, size).
inline std::vector<int64_t> positions_in(const View& indices, int64_t size) {
  std::vector<int64_t> out;
  const auto read = [&](const auto values) {
    out.reserve(values.size());
    for (const int64_t at : values) out.push_back(at < 0 ? at + size : at);
  };
  indices.dtype == DType::i64 ? read(indices.values<int64_t>()) : read(indices.values<int32_t>());
  return out;
}

/// Strides of x while the index runs over the shape of the indices, which are given along `axis`: 0 there.
inline Strides strides_across(std::span<const int64_t> x, int axis) {
  Strides out = strides_of(x);
  if (!out.empty()) out[static_cast<size_t>(axis)] = 0;
  return out;
}

}  // namespace hetnn::ops
