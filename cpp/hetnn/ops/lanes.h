// Lanes of a tensor: the elements along one axis, everything else fixed.
#pragma once

#include <span>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// `size` elements each, `step` apart; a tensor of rank 0 is one lane of one element.
struct Lanes {
  int64_t outer = 1, size = 1, step = 1;

  Lanes(std::span<const int64_t> shape, int axis) {
    for (size_t k = 0; k < shape.size(); ++k)
      (static_cast<int>(k) < axis ? outer : static_cast<int>(k) == axis ? size : step) *= shape[k];
  }
  int64_t count() const { return outer * step; }
  /// f(lane, first element), in row-major order of what is fixed.
  template <typename F>
  void visit(F f) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < step; ++i) f(o * step + i, o * size * step + i);
  }
};

/// The lanes of a tensor of that shape along the call's attribute `axis`.
inline Lanes lanes_of(const Call& call, std::span<const int64_t> shape) {
  return {shape, axis_of(call, call.integer("axis"), static_cast<int>(shape.size()))};
}

}  // namespace hetnn::ops
