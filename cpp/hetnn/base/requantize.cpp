// Fixed-point multiplication in its three roundings.
#include "hetnn/base/requantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "hetnn/base/error.h"

namespace hetnn {
namespace {

constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();

int32_t saturate(int64_t value) { return static_cast<int32_t>(std::clamp(value, kLow, kHigh)); }

}  // namespace

int32_t doubling_high_multiply(int32_t a, int32_t b) {
  if (a == kLow && b == kLow) return static_cast<int32_t>(kHigh);
  const int64_t product = static_cast<int64_t>(a) * b;
  const int64_t nudge = product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

int32_t rounding_shift_right(int32_t x, int bits) {
  if (bits == 0) return x;
  const int64_t mask = (int64_t{1} << bits) - 1, rest = x & mask, half = (mask >> 1) + (x < 0 ? 1 : 0);
  return static_cast<int32_t>((static_cast<int64_t>(x) >> bits) + (rest > half ? 1 : 0));
}

std::optional<Rounding> rounding_named(std::string_view name) {
  const auto* row = std::ranges::find(kRoundings, name, [](const auto& each) { return each.second; });
  return row == std::end(kRoundings) ? std::nullopt : std::optional(row->first);
}

double factor_between(double sums, double result, Rounding rounding) {
  if (rounding != Rounding::half_even_fp32) return sums / result;
  return static_cast<float>(sums) / static_cast<float>(result);
}

bool has_requant(double real) { return real > 0 && real < 0x1p30; }

std::string no_requant(double real) {
  return text("the factor between two scales must be in (0, 2^30); got ", real,
              ". Check the scales of the layer's operands and result.");
}

Requant requant_of(double real, Rounding rounding, int64_t divisor) {
  if (!has_requant(real)) throw InvalidModel(no_requant(real));
  if (real < 0x1p-31) return {};
  if (rounding == Rounding::half_even_fp32) {
    const auto factor = static_cast<float>(real / static_cast<double>(divisor));
    return {std::bit_cast<int32_t>(factor), 0};
  }
  int exponent = 0;
  auto multiplier = static_cast<int64_t>(std::llround(std::frexp(real, &exponent) * 0x1p31));
  if (multiplier == int64_t{1} << 31) multiplier /= 2, ++exponent;
  // As many bits more as the division takes, down to the least power of two.
  const int bits = std::min(static_cast<int>(std::bit_width(static_cast<uint64_t>(divisor))) - 1, 31 + exponent);
  return {static_cast<int32_t>((multiplier << bits) / divisor), exponent - bits};
}

Requant requant_of_steps(double real, Rounding rounding) {
  const Requant out = requant_of(real, rounding);
  if (rounding != Rounding::double_rounding || out.shift >= 0) return out;
  return {static_cast<int32_t>(std::llround(real * 0x1p31)), 0};
}

bool is_sound(const Requant& factor, Rounding rounding) {
  if (rounding == Rounding::half_even_fp32) return std::isfinite(std::bit_cast<float>(factor.multiplier));
  return factor.multiplier >= 0 && factor.shift >= -31 && factor.shift <= 30;
}

int32_t requantize(int32_t value, const Requant& factor, Rounding rounding) {
  if (rounding == Rounding::half_even_fp32) {
    const double real = std::nearbyint(static_cast<float>(value) * std::bit_cast<float>(factor.multiplier));
    return static_cast<int32_t>(std::clamp(real, static_cast<double>(kLow), static_cast<double>(kHigh)));
  }
  if (rounding == Rounding::single_rounding) {
    const int bits = 31 - factor.shift;
    const int64_t product = static_cast<int64_t>(value) * factor.multiplier;
    if (bits > 62) return 0;
    return saturate((product + (int64_t{1} << (bits - 1))) >> bits);
  }
  const int left = std::max<int>(factor.shift, 0), right = std::max<int>(-factor.shift, 0);
  return rounding_shift_right(doubling_high_multiply(saturate(static_cast<int64_t>(value) << left), factor.multiplier),
                              right);
}

int32_t requantize_wide(int64_t value, const Requant& factor, Rounding rounding) {
  if (rounding == Rounding::half_even_fp32) {
    const double real = std::nearbyint(static_cast<float>(value) * std::bit_cast<float>(factor.multiplier));
    return static_cast<int32_t>(std::clamp(real, static_cast<double>(kLow), static_cast<double>(kHigh)));
  }
  constexpr int64_t kWidest = int64_t{1} << 47;
  value = std::clamp(value, -kWidest, kWidest - 1);
  if (rounding == Rounding::single_rounding) {
    // In halves of 16 bits: the whole product has 79.
    const int bits = std::max(31 - factor.shift, 17);
    const int64_t low = (value & 0xFFFF) * factor.multiplier, high = (value >> 16) * factor.multiplier;
    const int64_t carried = bits > 62 ? 0 : (low + (int64_t{1} << (bits - 1))) >> 16;
    return bits > 62 ? 0 : saturate((high + carried) >> (bits - 16));
  }
  constexpr int32_t kMost = 0x7FFF;
  const int64_t multiplier = factor.multiplier < 0x7FFF0000 ? (factor.multiplier + (1 << 15)) >> 16 : kMost;
  const int bits = 15 - factor.shift;
  return saturate((value * multiplier + (int64_t{1} << (bits - 1))) >> bits);
}

}  // namespace hetnn
