// Requantization against the formulas in exact arithmetic.

#include "hetnn/base/requantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "expect_error.h"

namespace hetnn {
namespace {

__extension__ using Wide = __int128;

Wide floor_divide(Wide a, Wide b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// TOSA's apply_scale_32 with double_round, for shifts in [2, 62]: its shift is 31 less ours.
int64_t apply_scale_32(int64_t value, int64_t multiplier, int shift) {
  Wide round = Wide{1} << (shift - 1);
  if (shift > 31) round += value >= 0 ? Wide{1} << 30 : -(Wide{1} << 30);
  return static_cast<int64_t>(floor_divide(Wide{value} * multiplier + round, Wide{1} << shift));
}

TEST(Requantize, FactorsAreNormalized) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-30, 29);
  for (int k = 0; k < 10000; ++k) {
    const double real = std::exp2(exponent(random));
    const Requant factor = requant_of(real, Rounding::double_rounding);
    EXPECT_GE(factor.multiplier, 1 << 30);
    EXPECT_NEAR(std::ldexp(factor.multiplier, factor.shift - 31) / real, 1, 0x1p-31);
  }
  EXPECT_EQ(requant_of(1, Rounding::double_rounding), (Requant{1 << 30, 1}));
  for (const auto& [rounding, name] : kRoundings)
    EXPECT_EQ(requantize(INT32_MAX, requant_of(0x1p-32, rounding), rounding), 0) << name;
  EXPECT_ERROR(requant_of(0, Rounding::double_rounding), InvalidModel, "must be in (0, 2^30); got 0");
}

TEST(Requantize, DoubleRoundingIsTosasApplyScale) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-20, 0);
  std::uniform_int_distribution<int32_t> any(-(1 << 30), 1 << 30);
  for (int k = 0; k < 200000; ++k) {
    const Requant factor = requant_of(std::exp2(exponent(random)), Rounding::double_rounding);
    if (factor.shift > 0) continue;
    const int32_t value = k % 4 == 0 ? any(random) >> 20 : any(random);
    const int64_t want = apply_scale_32(value, factor.multiplier, 31 - factor.shift);
    // The two agree but for ties of the first rounding below zero, which gemmlowp's nudge sends up.
    EXPECT_NEAR(static_cast<double>(requantize(value, factor, Rounding::double_rounding)), static_cast<double>(want),
                value < 0 ? 1 : 0);
  }
}

TEST(Requantize, SingleRoundingRoundsOnce) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-28, 3);
  std::uniform_int_distribution<int32_t> any(-(1 << 26), 1 << 26);
  for (int k = 0; k < 200000; ++k) {
    const Requant factor = requant_of(std::exp2(exponent(random)), Rounding::single_rounding);
    const int32_t value = any(random);
    const int bits = 31 - factor.shift;
    const Wide want = floor_divide(Wide{value} * factor.multiplier + (Wide{1} << (bits - 1)), Wide{1} << bits);
    EXPECT_EQ(requantize(value, factor, Rounding::single_rounding), static_cast<int64_t>(want));
  }
}

TEST(Requantize, SingleRoundingOfWideSumsKeepsTheWholeFactor) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> exponent(-31, 3);
  std::uniform_int_distribution<int64_t> any(-(int64_t{1} << 47), (int64_t{1} << 47) - 1);
  for (int k = 0; k < 200000; ++k) {
    const Requant factor = requant_of(std::exp2(exponent(random)), Rounding::single_rounding);
    const int64_t value = any(random) >> (k % 40);
    const int bits = 31 - factor.shift;
    const Wide whole = floor_divide(Wide{value} * factor.multiplier + (Wide{1} << (bits - 1)), Wide{1} << bits);
    const Wide want =
        std::clamp(whole, Wide{std::numeric_limits<int32_t>::min()}, Wide{std::numeric_limits<int32_t>::max()});
    EXPECT_EQ(requantize_wide(value, factor, Rounding::single_rounding), static_cast<int64_t>(want));
  }
}

TEST(Requantize, HalfEvenIsTheFloatProduct) {
  const Requant half = requant_of(0.5, Rounding::half_even_fp32);
  EXPECT_EQ(requantize(1, half, Rounding::half_even_fp32), 0);
  EXPECT_EQ(requantize(3, half, Rounding::half_even_fp32), 2);
  EXPECT_EQ(requantize(-5, half, Rounding::half_even_fp32), -2);
}

TEST(Requantize, SmallValuesAreExactEverywhere) {
  // Up to 2^20 steps times a factor of up to 1 stays within one unit in all roundings, and at a factor of 1 is itself.
  for (Rounding rounding : {Rounding::double_rounding, Rounding::single_rounding, Rounding::half_even_fp32}) {
    const Requant one = requant_of(1, rounding);
    for (int32_t value = -(1 << 20); value <= 1 << 20; value += 77) EXPECT_EQ(requantize(value, one, rounding), value);
  }
}

}  // namespace
}  // namespace hetnn
