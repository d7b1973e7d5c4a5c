// 16-bit floats against arithmetic in double, over every bit pattern and around every rounding boundary.
#include "hetnn/base/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hetnn {
namespace {

// The value of f16 bits by the definition of IEEE 754 binary16.
double f16_value(uint32_t bits) {
  const double sign = (bits & 0x8000U) ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const double fraction = bits & 1023U;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(NarrowFloat, F16WidensToItsValueAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = f16_to_f32(static_cast<uint16_t>(bits));
    const double want = f16_value(bits);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide))));
      continue;
    }
    EXPECT_EQ(static_cast<double>(wide), want);
    EXPECT_EQ(std::signbit(wide), std::signbit(want));
    EXPECT_EQ(f32_to_f16(wide), bits);
  }
}

TEST(NarrowFloat, F16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = f16_value(bits);
    const double high = bits == 0x7bff ? 65536 : f16_value(bits + 1);  // what rounds up from there is inf
    const auto middle = static_cast<float>((low + high) / 2);
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(f32_to_f16(middle), even);
    EXPECT_EQ(f32_to_f16(-middle), even | 0x8000U);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), bits);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), bits + 1);
  }
  EXPECT_EQ(f32_to_f16(1e30F), 0x7c00);
}

TEST(NarrowFloat, Bf16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto low = static_cast<double>(bf16_to_f32(static_cast<uint16_t>(bits)));
    const auto high = static_cast<double>(bf16_to_f32(static_cast<uint16_t>(bits + 1)));
    const auto middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(f32_to_bf16(static_cast<float>(low)), bits);
    EXPECT_EQ(f32_to_bf16(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(f32_to_bf16(-std::nextafter(middle, INFINITY)), (bits + 1) | 0x8000U);
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace hetnn
