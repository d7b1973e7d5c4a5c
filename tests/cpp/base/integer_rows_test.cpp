// Rows of i8 in integers, against the real functions: at most one step away.
#include "hetnn/base/integer_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "expect_error.h"

namespace hetnn {
namespace {

using Row = std::vector<int32_t>;

Row random_row(std::mt19937& random, size_t count, int low = -128, int high = 127) {
  std::uniform_int_distribution<int> any(low, high);
  Row out(count);
  std::ranges::generate(out, [&] { return any(random); });
  return out;
}

double step_of(double real, double scale, int zero) {
  return std::clamp(std::nearbyint(real / scale) + zero, -128.0, 127.0);
}

int softmax_difference(const Row& in, double in_scale, double out_scale, int zero) {
  Row out(in.size());
  softmax_row(softmax_table(in_scale, out_scale), zero, in, out);
  const int32_t largest = *std::ranges::max_element(in);
  double sum = 0;
  for (const int32_t x : in) sum += std::exp(in_scale * (x - largest));
  double most = 0;
  for (size_t k = 0; k < in.size(); ++k) {
    const double want = step_of(std::exp(in_scale * (in[k] - largest)) / sum, out_scale, zero);
    most = std::max(most, std::abs(want - out[k]));
  }
  return static_cast<int>(most);
}

TEST(IntegerRows, SoftmaxIsAtMostOneStepFromTheReals) {
  std::mt19937 random(1);
  for (const double in_scale : {1e-9, 0.003, 0.02, 0.1, 0.7, 5.0, 100.0}) {
    for (const double out_scale : {1 / 256.0, 0.0031, 0.011}) {
      for (const size_t count : {size_t{1}, size_t{2}, size_t{3}, size_t{17}, size_t{128}, size_t{1000}}) {
        SCOPED_TRACE(testing::Message() << in_scale << " to " << out_scale << ", " << count);
        EXPECT_LE(softmax_difference(random_row(random, count), in_scale, out_scale, -128), 1);
        EXPECT_LE(softmax_difference(random_row(random, count, -128, -60), in_scale, out_scale, 3), 1);
        EXPECT_LE(softmax_difference(Row(count, 5), in_scale, out_scale, -128), 1);
      }
    }
  }
}

// By hand: of two equal values each has half, 128 steps of 1/256.
TEST(IntegerRows, TwoEqualValuesShareTheUnit) {
  Row row = {7, 7};
  softmax_row(softmax_table(0.1, 1 / 256.0), -128, row, row);
  EXPECT_EQ(row, (Row{0, 0}));
}

TEST(IntegerRows, ASumBeyond32BitsIsHeldAtTheirLargest) {
  Row row(20000, 1);
  softmax_row(softmax_table(0.1, 1 / 256.0), -128, row, row);
  EXPECT_EQ(row, Row(20000, -128));
}

TEST(IntegerRows, ATableIsSoundOrRefused) {
  SoftmaxTable table = softmax_table(0.1, 1 / 256.0);
  EXPECT_TRUE(is_sound(table));
  EXPECT_TRUE(std::ranges::is_sorted(table.exponentials, std::greater()));
  table.exponentials[9] = -1;
  EXPECT_FALSE(is_sound(table));
  table = softmax_table(0.1, 1 / 256.0);
  table.exponentials[0] = 1;
  EXPECT_FALSE(is_sound(table));
  EXPECT_ERROR(softmax_table(0.1, 0x1p-40), InvalidModel, "the factor between two scales must be in (0, 2^30)");
}

int normal_difference(const Row& in, std::span<const double> weights, std::span<const double> biases, double eps,
                      double in_scale, double out_scale, int zero) {
  const NormalFactors factors = normal_factors(weights, biases, eps, in_scale, out_scale).value();
  Row out(in.size());
  normalize_row(factors.channels, factors.eps, factors.shift, zero, in, out);
  const auto count = static_cast<double>(in.size());
  double mean = 0, variance = 0, most = 0;
  for (const int32_t x : in) mean += in_scale * x / count;
  for (const int32_t x : in) variance += (in_scale * x - mean) * (in_scale * x - mean) / count;
  for (size_t k = 0; k < in.size(); ++k) {
    const double normal = (in_scale * in[k] - mean) / std::sqrt(variance + eps);
    most = std::max(most, std::abs(step_of(normal * weights[k] + biases[k], out_scale, zero) - out[k]));
  }
  return static_cast<int>(most);
}

TEST(IntegerRows, NormalizationIsAtMostOneStepFromTheReals) {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  for (const double in_scale : {1e-4, 0.02, 3.0}) {
    for (const double out_scale : {0.0007, 0.03, 2.0}) {
      for (const size_t count : {size_t{1}, size_t{2}, size_t{31}, size_t{384}, size_t{16384}}) {
        std::vector<double> weights(count), biases(count);
        std::ranges::generate(weights, [&] { return normal(random); });
        std::ranges::generate(biases, [&] { return normal(random); });
        SCOPED_TRACE(testing::Message() << in_scale << " to " << out_scale << ", " << count);
        for (const double eps : {0.0, 1e-12, 1e-5}) {
          EXPECT_LE(normal_difference(random_row(random, count), weights, biases, eps, in_scale, out_scale, -3), 1);
          EXPECT_LE(normal_difference(random_row(random, count, 20, 22), weights, biases, eps, in_scale, out_scale, 4),
                    1);
        }
      }
    }
  }
}

// One value that stands out of the longest row makes the largest normalized value, with the largest weight.
TEST(IntegerRows, NothingOverflowsInTheLongestRow) {
  Row row(kMostNormalized, -128);
  row[5] = 127;
  const std::vector<double> weights(row.size(), 1.0), biases(row.size(), 0.0);
  EXPECT_LE(normal_difference(row, weights, biases, 0, 0.01, 1.5, 0), 1);
  EXPECT_LE(normal_difference(row, weights, biases, 0, 0.01, 0x1p-29, 0), 1);
}

TEST(IntegerRows, RowsOfOneValueBecomeTheBias) {
  const std::vector<double> weights = {1, 2, 3}, biases = {0.5, -0.25, 0};
  const NormalFactors factors = normal_factors(weights, biases, 0, 0.1, 0.125).value();
  Row row = {9, 9, 9};
  normalize_row(factors.channels, factors.eps, factors.shift, 1, row, row);
  EXPECT_EQ(row, (Row{5, -1, 1}));
}

TEST(IntegerRows, FactorsBeyondTheirBitsAreNone) {
  const std::vector<double> one = {1}, none = {0}, long_row(kMostNormalized + 1, 1.0);
  EXPECT_TRUE(normal_factors(one, none, 1e-5, 0.1, 0.1));
  EXPECT_FALSE(normal_factors(long_row, long_row, 1e-5, 0.1, 0.1));
  EXPECT_FALSE(normal_factors(one, none, 1e-5, 0.1, 0x1p-31));
  EXPECT_FALSE(normal_factors(one, std::vector<double>{1e6}, 1e-5, 0.1, 0.1));
  EXPECT_FALSE(normal_factors(one, none, 1e20, 0.1, 0.1));
  EXPECT_FALSE(normal_factors(std::vector<double>{std::nan("")}, none, 1e-5, 0.1, 0.1));
  EXPECT_FALSE(is_sound_eps(-1));
}

}  // namespace
}  // namespace hetnn
