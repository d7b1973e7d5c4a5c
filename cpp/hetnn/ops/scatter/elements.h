// What operators share that address single elements along an axis by an index of their own.
#pragma once

#include <vector>

#include "hetnn/ops/lanes.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

/// Fails with `<op>_c1` unless input 1 holds i64 or i32.
inline void check_indices(const Call& call) {
  const DType dtype = call.input(1).dtype;
  if (dtype == DType::i64 || dtype == DType::i32) return;
  fail(call, text(call.op->name, "_c1"), text("indices must be i64 or i32; got ", dtype_name(dtype), ". Cast them."));
}

/// The indices, each in [0, size): negative ones count from the end where the call says so. Fails with `<op>_c3` for
/// one that is outside.
inline std::vector<int64_t> positions_in(const Call& call, const View& indices, int64_t size) {
  const int64_t least = call.flag("from_end") ? -size : 0;
  std::vector<int64_t> out;
  const auto read = [&](const auto values) {
    out.reserve(values.size());
    for (const int64_t at : values) {
      if (at < least || at >= size) {
        fail(call, text(call.op->name, "_c3"),
             text("index ", at, " is outside an axis of ", size, "; it must be in [", least, ",", size,
                  "). Check the indices."));
      }
      out.push_back(at < 0 ? at + size : at);
    }
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
