// Conversions between f32 and the 16-bit floating-point types: IEEE binary16 (f16) and bfloat16 (bf16).
#pragma once

#include <cstdint>

#include "hetnn/base/dtype.h"

namespace hetnn {

/// Exact.
float f16_to_f32(uint16_t bits);
/// Rounded to nearest even; too large becomes inf, NaN stays NaN.
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

/// Whether `dtype` is one of the two.
inline bool is_narrow_float(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
/// By element type, f16 or bf16.
inline float widen_float(DType dtype, uint16_t bits) {
  return dtype == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}
inline uint16_t narrow_float(DType dtype, float value) {
  return dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
}

}  // namespace hetnn
