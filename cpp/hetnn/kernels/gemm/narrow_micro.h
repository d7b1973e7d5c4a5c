// The microkernel of products of f32 with weights of f16 or bf16: panels of 16 columns, [k][16].
#pragma once

#include <cstdint>

#include "hetnn/base/dtype.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// out[c] = bias[c] + sum over k of x[k] * panel[k][c] for c < cols <= 16; bias may be null.
struct NarrowTile {
  const float* x;
  const uint16_t* panel;
  int64_t k;
  const float* bias;
  float* out;
  int64_t cols;
};
/// One row by one panel of that type.
void multiply_narrow(DType dtype, const NarrowTile& tile);

/// The reals of so many weights, a multiple of 16.
void widen_panel(DType dtype, const uint16_t* from, int64_t count, float* to);

}  // namespace hetnn::kernels
