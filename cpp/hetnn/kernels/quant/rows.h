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

/// Of a sum of two rows of bytes.
struct SumScales {
  float a, b, y;
  int32_t a_zero, b_zero, y_zero;
};
/// y[i] = saturate(round((a.scale (a[i] - a.zero) + b.scale (b[i] - b.zero)) / y.scale) + y.zero) as to_integers of
/// such a sum of reals says, by steps that no division takes; null where some sum of two bytes would come out
/// otherwise.
using SumRows = void (*)(const int8_t* a, const int8_t* b, int64_t n, const SumScales& scales, int8_t* y);
SumRows sum_rows(const SumScales& scales);

const QuantRows& quant_rows();

}  // namespace hetnn::kernels
