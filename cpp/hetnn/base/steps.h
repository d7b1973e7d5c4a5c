// Between reals and the integers that stand for them: real = scale * (integer - zero point).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hetnn {

// i8 as ONNX and LiteRT convert it, in f32; i32, which f32 does not hold, in double.

/// The real that an i8 or i32 stands for.
template <typename T>
float real_of(T integer, double scale, int64_t zero_point) {
  if constexpr (sizeof(T) == 1)
    return static_cast<float>(scale) * static_cast<float>(integer - static_cast<int32_t>(zero_point));
  else
    return static_cast<float>(scale * (static_cast<double>(integer) - static_cast<double>(zero_point)));
}

/// The nearest integer, of two equally near the even one; saturated, NaN as 0.
template <typename T>
T integer_of(float real, double scale, int64_t zero_point) {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  if constexpr (sizeof(T) == 1) {
    // Beyond 2^22 a sum with this number has no fraction, so adding and taking away rounds; no call, so loops
    // vectorize.
    constexpr float kRounds = 12582912;
    const auto zero = static_cast<float>(zero_point);
    const float steps = (real != real ? 0.0F : real) / static_cast<float>(scale);
    const float within = std::min(std::max(steps, static_cast<float>(kLow) - zero), static_cast<float>(kHigh) - zero);
    return static_cast<T>(static_cast<int32_t>((within + kRounds) - kRounds + zero));
  } else {
    const double steps = std::nearbyint((real != real ? 0.0 : static_cast<double>(real)) / scale);
    return static_cast<T>(
        std::clamp(steps + static_cast<double>(zero_point), static_cast<double>(kLow), static_cast<double>(kHigh)));
  }
}

}  // namespace hetnn
