// Rows of i8 to the reals that they stand for and back, vectorized: base/steps.h, bit for bit.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

struct QuantRows {
  /// y[i] = scale * (x[i] - zero)
  void (*to_reals)(const int8_t* x, int64_t n, float scale, int32_t zero, float* y);
  /// y[i] = saturate(round(x[i] / scale) + zero), to nearest even, NaN as 0
  void (*to_integers)(const float* x, int64_t n, float scale, int32_t zero, int8_t* y);
};

const QuantRows& quant_rows();

}  // namespace hetnn::kernels
