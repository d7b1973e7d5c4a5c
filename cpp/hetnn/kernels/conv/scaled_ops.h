// Rows of pixels scaled and shifted a channel, vectorized: what scaled_conv2d multiplies.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// out[r][c] = the greater of in[r][c] * scale[c] + shift[c] and lo, product and sum each rounded; NaN stays.
struct ScaledBlock {
  const float* in;
  int64_t ld_in;
  float* out;
  int64_t ld_out;
  int64_t rows;
  int64_t cols;
  const float* scale;
  const float* shift;  // or null
  float lo;
};

/// For this machine.
void scale_rows(const ScaledBlock& block);

}  // namespace hetnn::kernels
