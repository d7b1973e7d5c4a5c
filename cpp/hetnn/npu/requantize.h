// Integer arithmetic of quantized layers: accumulators to the scale of the result.
//
// double_rounding  x · m · 2^(s-31) by a saturating doubling high multiply and a rounding right shift, each rounded:
//                  gemmlowp's MultiplyByQuantizedMultiplier, TOSA's apply_scale_32 with double_round.
// single_rounding  floor(x · m · 2^(s-31) + 1/2), one rounding.
// half_even_fp32   the nearest integer, ties to even, of f32(x) · f32 scale (ONNX QLinearConv); the multiplier field
//                  then holds the bits of the f32.
#pragma once

#include <cstdint>

#include "hetnn/npu/spec.h"

namespace hetnn::npu {

/// A real factor as an integer multiplier in [2^30, 2^31) and a power of two: as the words of a stream hold it.
struct Requant {
  int32_t multiplier = 0;
  int32_t shift = 0;  // positive: to the left
  bool operator==(const Requant&) const = default;
};

/// The factor `real` (positive, finite, in [2^-31, 2^30)) in a target's form. InvalidModel for one out of range.
Requant requant_of(double real, Rounding rounding);

/// Whether a factor that a device reads is one that requant_of may have made.
bool is_sound(const Requant& factor, Rounding rounding);

/// value · factor, rounded. Saturates to 32 bits.
int32_t requantize(int32_t value, const Requant& factor, Rounding rounding);

/// Extra bits of the common scale of an elementwise operation's operands.
inline constexpr int kElementwiseBits = 20;

}  // namespace hetnn::npu
