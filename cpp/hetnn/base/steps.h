// Between reals and the integers that stand for them: real = scale * (integer - zero point).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hetnn {

// Integers of up to 16 bits as ONNX and LiteRT convert them, in f32; wider ones, which f32 does not hold, in double.

/// The real that an integer stands for.
template <typename T>
float real_of(T integer, double scale, int64_t zero_point) {
  if constexpr (sizeof(T) <= 2)
    return static_cast<float>(scale) * static_cast<float>(integer - static_cast<int32_t>(zero_point));
  else
    return static_cast<float>(scale * (static_cast<double>(integer) - static_cast<double>(zero_point)));
}

/// The nearest integer; of two equally near the even one, or with `halves_away` the one further from 0 before the zero
/// point is added, as LiteRT's kernels do. Saturated, NaN as 0.
template <typename T, bool halves_away = false>
T integer_of(float real, double scale, int64_t zero_point) {
  constexpr auto kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  if constexpr (sizeof(T) <= 2) {
    // Beyond 2^22 a sum with this number has no fraction, so adding and taking away rounds; no call, so loops
    // vectorize.
    constexpr float kRounds = 12582912;
    const auto zero = static_cast<float>(zero_point);
    const float steps = (real != real ? 0.0F : real) / static_cast<float>(scale);
    const float within = std::min(std::max(steps, static_cast<float>(kLow) - zero), static_cast<float>(kHigh) - zero);
    if constexpr (halves_away)
      return static_cast<T>(static_cast<int32_t>(within + std::copysign(0.49999997F, within)) +
                            static_cast<int32_t>(zero_point));
    return static_cast<T>(static_cast<int32_t>((within + kRounds) - kRounds + zero));
  } else {
    const double exact = (real != real ? 0.0 : static_cast<double>(real)) / scale;
    const double steps = halves_away ? std::round(exact) : std::nearbyint(exact);
    const double all = steps + static_cast<double>(zero_point);
    // The largest i64 is no double.
    if (all >= -static_cast<double>(kLow)) return kHigh;
    return static_cast<T>(std::max(all, static_cast<double>(kLow)));
  }
}

}  // namespace hetnn
