// Integer arithmetic of quantized layers: accumulators to the scale of the result.
//
// double_rounding  x · m · 2^(s-31) by a saturating doubling high multiply and a rounding right shift, each rounded:
//                  gemmlowp's MultiplyByQuantizedMultiplier, TOSA's apply_scale_32 with double_round.
// single_rounding  floor(x · m · 2^(s-31) + 1/2), one rounding.
// half_even_fp32   the nearest integer, ties to even, of f32(x) · f32 scale (ONNX QLinearConv); the multiplier field
//                  then holds the bits of the f32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hetnn {

enum class Rounding : uint8_t { double_rounding, single_rounding, half_even_fp32 };

/// Their names in data sheets and in texts of graphs.
inline constexpr std::pair<Rounding, std::string_view> kRoundings[] = {{Rounding::double_rounding, "double"},
                                                                       {Rounding::single_rounding, "single"},
                                                                       {Rounding::half_even_fp32, "half_even_fp32"}};
std::optional<Rounding> rounding_named(std::string_view name);

/// A real factor as an integer multiplier in [2^30, 2^31) and a power of two: as the words of a stream hold it.
struct Requant {
  int32_t multiplier = 0;
  int32_t shift = 0;  // positive: to the left
  bool operator==(const Requant&) const = default;
};

/// Whether a real factor has that form: it is in (0, 2^30). One below 2^-31 is held as 0, as LiteRT does.
bool has_requant(double real);
/// What to tell of one that has not.
std::string no_requant(double real);
/// The real factor between the scale of sums, a product of two, and that of the result. In half_even_fp32 it is f32's
/// quotient of f32, as ONNX Runtime and the reference of ONNX's operators take it.
double factor_between(double sums, double result, Rounding rounding);
/// The factor `real / divisor` in a target's form. InvalidModel for one that has none. A divisor above 1 divides the
/// integer multiplier of `real`, as LiteRT's means do, but for half_even_fp32.
Requant requant_of(double real, Rounding rounding, int64_t divisor = 1);

/// The same for values of up to 16 bits, which double_rounding then rounds once: no shift to the right is left to
/// round.
Requant requant_of_steps(double real, Rounding rounding);

/// Whether a factor that a device reads is one that requant_of may have made.
bool is_sound(const Requant& factor, Rounding rounding);

/// value · factor, rounded. Saturates to 32 bits.
int32_t requantize(int32_t value, const Requant& factor, Rounding rounding);
/// The same of sums of up to 48 bits, those of i16, by a multiplier of 15 bits and one rounding, halves upwards, but
/// for half_even_fp32 (LiteRT's MultiplyByQuantizedMultiplier of int64).
int32_t requantize_wide(int64_t value, const Requant& factor, Rounding rounding);

/// round(a · b / 2^31), halves upwards; the one product that overflows saturates.
int32_t doubling_high_multiply(int32_t a, int32_t b);
/// round(x / 2^bits), halves away from zero.
int32_t rounding_shift_right(int32_t x, int bits);

/// Extra bits of the common scale of an elementwise operation's operands: of i8, and of i16.
inline constexpr int kElementwiseBits = 20, kElementwiseBits16 = 15;

}  // namespace hetnn
