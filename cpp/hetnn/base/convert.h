// From one element type to another: the one meaning of a cast.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hetnn/base/visit_dtype.h"

namespace hetnn {

/// x as a To. To bool: whether x is not 0 (NaN is not). Integers wrap to narrower ones. Reals are rounded to nearest
/// even by narrower reals (by f16 and bf16 as f32) and cut towards zero by integers, of which NaN and what is out of
/// range give the least; unsigned integers and those narrower than i32 are cut as i64 and wrap from there, so that -1.0
/// as u8 is 255 (u64 keeps what lies above i64).
template <typename To, typename From>
To convert(From x) {
  if constexpr (kIsNarrowFloat<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    // By its bits, since denormals may count as zeros.
    if constexpr (std::is_same_v<From, float>) return std::bit_cast<uint32_t>(x) << 1 != 0;
    if constexpr (std::is_same_v<From, double>) return std::bit_cast<uint64_t>(x) << 1 != 0;
    return x != From(0);
  } else if constexpr (kIsNarrowFloat<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                       (sizeof(To) < sizeof(int32_t) || std::is_unsigned_v<To>)) {
    constexpr double kSign = 9223372036854775808.0;  // 2^63
    if (std::is_same_v<To, uint64_t> && x >= kSign && x < 2 * kSign) return static_cast<To>(x);
    return static_cast<To>(convert<int64_t>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr auto kLeast = static_cast<double>(std::numeric_limits<To>::min());
    const auto value = static_cast<double>(x);
    return value > kLeast - 1.0 && value < -kLeast ? static_cast<To>(value) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(x);  // NOLINT(bugprone-signed-char-misuse): i8 is a number
  }
}

/// Elements of one type that is computed in, side by side, to another.
class ConvertElements {
 public:
  ConvertElements(DType from, DType to);
  /// y[i] = x[i] converted, for `count` elements.
  void operator()(const std::byte* x, std::byte* y, int64_t count) const { row_(x, y, count); }

 private:
  void (*row_)(const std::byte* x, std::byte* y, int64_t count);
};

}  // namespace hetnn
