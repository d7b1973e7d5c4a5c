// Rows of i8 to the reals that they stand for and back, vectorized: base/steps.h, bit for bit.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// Rows of bytes to be summed, ld apart.
struct SumBlock {
  const int8_t *a, *b;
  int8_t* y;
  int64_t ld_a, ld_b, ld_y;
  int64_t rows, n;
};

/// y[i] = saturate(round((a.scale (a[i] - a.zero) + b.scale (b[i] - b.zero)) / y.scale) + y.zero) as to_integers of
/// such a sum of reals says, by steps that no division takes.
struct ByteSum {
  float a, b, y;
  int32_t a_zero, b_zero, y_zero;
  int32_t low = -128, high = 127;                // of the result
  float factor_a = 0, factor_b = 0, offset = 0;  // of the quick way

  /// Finds the quickest way that gives the same for every two bytes.
  void choose();
  /// Null where there is none, and before the choice.
  void (*run)(const ByteSum& sum, const SumBlock& block) = nullptr;
};

struct QuantRows {
  /// y[i] = scale * (x[i] - zero)
  void (*to_reals)(const int8_t* x, int64_t n, float scale, int32_t zero, float* y);
  /// y[i] = saturate(round(x[i] / scale) + zero), to nearest even, NaN as 0
  void (*to_integers)(const float* x, int64_t n, float scale, int32_t zero, int8_t* y);
  /// y[i] = table[x[i] + 128]
  void (*look_up)(const int8_t* x, int64_t n, const int8_t* table, int8_t* y);
  /// What ByteSum chooses between.
  void (*sum_quick)(const ByteSum& sum, const SumBlock& block);
  void (*sum_nearest)(const ByteSum& sum, const SumBlock& block);
};

const QuantRows& quant_rows();

}  // namespace hetnn::kernels
