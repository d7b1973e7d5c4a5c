// Sums and conversions of f16 and bf16, and sums of bytes, in registers.
#pragma once

#include <cstdint>

#include "hetnn/base/dtype.h"
#include "hetnn/kernels/block_ops.h"

namespace hetnn::kernels {

/// Elements that `so_far` has room for behind the last one, so that whole vectors are read and written.
inline constexpr int64_t kSoFarRoom = 16;

/// The result so far (none in the first pass), plus coefficients[k] inputs[k] one after the other, each product and sum
/// rounded to f32. `out` null: the result so far is kept in so_far; else it is rounded to the type and written.
struct HalvesPass {
  const uint16_t* const* inputs;
  const float* coefficients;
  int count;
  bool first;
  float* so_far;
  uint16_t* out;
  int64_t n;
};
using HalvesFunction = void (*)(const HalvesPass&);

/// For f16 or bf16. `weighs`: there are coefficients other than 1; `rounds`: products and sums are rounded to the type.
HalvesFunction halves_function(DType dtype, bool weighs, bool rounds);

/// n elements of f16 or bf16 to f32 and back, as base/narrow_float.h says.
struct HalvesConversion {
  void (*widen)(const uint16_t* x, float* y, int64_t n);
  void (*narrow)(const float* x, uint16_t* y, int64_t n);
};
HalvesConversion halves_conversion(DType dtype);

/// Rounds every element to the digits of f16 or bf16.
BlockFunction round_function(DType dtype);

/// The sum of those inputs modulo 256, and in a pass that is not the first of what is in `out`.
struct BytesPass {
  const uint8_t* const* inputs;
  int count;
  bool first;
  uint8_t* out;
  int64_t n;
};
using BytesFunction = void (*)(const BytesPass&);
BytesFunction bytes_function();

}  // namespace hetnn::kernels
