// Conversions between element types at the edges of both.
#include "hetnn/base/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace hetnn {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TEST(Convert, RealsAreCutTowardsZero) {
  EXPECT_EQ(convert<int32_t>(-1.75f), -1);
  EXPECT_EQ(convert<int64_t>(3.99), 3);
  EXPECT_EQ(convert<int8_t>(-128.9f), -128);
  EXPECT_EQ(convert<int8_t>(127.9f), 127);
  EXPECT_EQ(convert<uint8_t>(255.9f), 255);
  EXPECT_EQ(convert<int64_t>(-0.0), 0);
  EXPECT_EQ(convert<int32_t>(Float16(-2.5f)), -2);
  EXPECT_EQ(convert<int16_t>(BFloat16(300.0f)), 300);
}

template <typename T>
void out_of_range_is_least() {
  const T least = std::numeric_limits<T>::min();
  for (const double x : {kNan, kInf, -kInf, std::ldexp(1.0, std::numeric_limits<T>::digits), 1e300, -1e300})
    EXPECT_EQ(convert<T>(x), least) << x;
  EXPECT_EQ(convert<T>(static_cast<double>(least)), least);
  EXPECT_EQ(convert<T>(std::numeric_limits<float>::infinity()), least);
}

TEST(Convert, NarrowIntegersAreCutAsLongOnesAndWrap) {
  for (const double x : {kNan, kInf, -kInf, 1e300}) {
    EXPECT_EQ(convert<int8_t>(x), 0) << x;
    EXPECT_EQ(convert<int16_t>(x), 0) << x;
  }
  EXPECT_EQ(convert<int8_t>(128.0), -128);
  EXPECT_EQ(convert<int8_t>(300.0), 44);
  EXPECT_EQ(convert<int16_t>(-32769.0), 32767);
}

TEST(Convert, NanAndWhatIsOutOfRangeGiveTheLeastInteger) {
  out_of_range_is_least<int32_t>();
  out_of_range_is_least<int64_t>();
  EXPECT_EQ(convert<int64_t>(9223372036854774784.0), 9223372036854774784);  // the greatest double below 2^63
}

TEST(Convert, NegativeRealsWrapToUnsignedIntegersByWayOfI64) {
  EXPECT_EQ(convert<uint8_t>(-1.0f), 255);
  EXPECT_EQ(convert<uint8_t>(-1.9), 255);
  EXPECT_EQ(convert<uint8_t>(256.0), 0);
  EXPECT_EQ(convert<uint8_t>(-300.0), 212);
  EXPECT_EQ(convert<uint8_t>(kNan), 0);
  EXPECT_EQ(convert<uint8_t>(kInf), 0);
}

TEST(Convert, IntegersWrapAndRoundToReals) {
  EXPECT_EQ(convert<uint8_t>(int64_t{-1}), 255);
  EXPECT_EQ(convert<int8_t>(uint8_t{200}), -56);
  EXPECT_EQ(convert<int16_t>(int32_t{70000}), 4464);
  EXPECT_EQ(convert<int32_t>((int64_t{1} << 32) + 7), 7);
  EXPECT_EQ(convert<double>((int64_t{1} << 53) + 1), 9007199254740992.0);
  EXPECT_EQ(convert<float>(int32_t{16777217}), 16777216.0f);
  EXPECT_EQ(convert<int64_t>(true), 1);
  EXPECT_EQ(convert<float>(true), 1.0f);
}

TEST(Convert, EverythingButZeroIsTrue) {
  for (const double x : {kNan, kInf, 0.25, -1.0, 5e-324}) EXPECT_TRUE(convert<bool>(x)) << x;
  EXPECT_FALSE(convert<bool>(-0.0));
  EXPECT_TRUE(convert<bool>(int64_t{1} << 40));
  EXPECT_FALSE(convert<bool>(int8_t{0}));
  EXPECT_TRUE(convert<bool>(Float16(std::nanf(""))));
}

TEST(Convert, RealsAreRoundedToNearestEven) {
  EXPECT_EQ(convert<float>(1.0 + std::ldexp(1.0, -24)), 1.0f);
  EXPECT_EQ(convert<float>(1e300), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(convert<float>(kNan)));
  EXPECT_EQ(convert<Float16>(65519.0f).bits, 0x7bff);
  EXPECT_EQ(convert<Float16>(65520.0).bits, 0x7c00);
  EXPECT_EQ(convert<Float16>(int64_t{2049}).bits, Float16(2048.0f).bits);
  EXPECT_EQ(convert<BFloat16>(Float16(1.0f)).bits, 0x3f80);
  EXPECT_TRUE(std::signbit(convert<double>(-0.0f)));
}

// Every number of elements up to two vectors and a rest, of every two types.
TEST(Convert, ManyElementsAsEachAlone) {
  constexpr size_t kMost = 40;
  for (const DType from : kComputedDTypes) {
    for (const DType to : kComputedDTypes) {
      visit_dtype(from, [&](auto x) {
        visit_dtype(to, [&](auto y) {
          using From = decltype(x);
          using To = decltype(y);
          From in[kMost];
          for (size_t k = 0; k < kMost; ++k) in[k] = convert<From>(static_cast<double>(k) * 37.5 - 700);
          for (size_t count = 0; count < kMost; ++count) {
            To out[kMost + 1], alone[kMost + 1];
            std::memset(out, 1, sizeof out);
            std::memset(alone, 1, sizeof alone);
            for (size_t k = 0; k < count; ++k) alone[k] = convert<To>(in[k]);
            ConvertElements(from, to)(reinterpret_cast<const std::byte*>(in), reinterpret_cast<std::byte*>(out),
                                      static_cast<int64_t>(count));
            EXPECT_EQ(std::memcmp(out, alone, sizeof out), 0) << dtype_name(from) << dtype_name(to) << count;
          }
        });
      });
    }
  }
}

}  // namespace
}  // namespace hetnn
