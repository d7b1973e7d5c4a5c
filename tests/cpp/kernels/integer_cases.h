// Layers of integers as tests make them, and what they must give, written out as sums of integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "hetnn/base/requantize.h"
#include "hetnn/base/steps.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "kernel_runner.h"

namespace hetnn::kernels::testing {

/// Integers of [low, high], one in four of them an end of that range.
inline std::vector<double> random_integers(int64_t count, unsigned seed, int low = -128, int high = 127) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> any(low, high), which(0, 7);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    const int kind = which(generator);
    value = kind == 0 ? low : kind == 1 ? high : any(generator);
  }
  return values;
}

/// How far f32 may be from the reals of sums, of the largest.
inline constexpr double kOfReals = 3e-7;

/// Scales and zero points of a layer. Per-filter scales differ by filter.
struct Integers {
  double x_scale = 0.02, y_scale = 0.05;
  int x_zero = 3, y_zero = -7;
  std::vector<double> weight_scales = {0.01};
  int low = -128, high = 127;  // of the result
  int weight_zero = 0;
  Rounding rounding = Rounding::half_even_fp32;

  static Integers of(int64_t filters, double x_scale, double y_scale, int x_zero, int y_zero) {
    Integers out{.x_scale = x_scale, .y_scale = y_scale, .x_zero = x_zero, .y_zero = y_zero, .weight_scales = {}};
    for (int64_t m = 0; m < filters; ++m) out.weight_scales.push_back(0.004 + 0.0007 * static_cast<double>(m % 11));
    return out;
  }
  double weight_scale(int64_t filter) const {
    return weight_scales[weight_scales.size() == 1 ? 0 : static_cast<size_t>(filter)];
  }
  std::vector<double> bias_scales() const {
    std::vector<double> out;
    for (const double scale : weight_scales) out.push_back(scale * x_scale);
    return out;
  }
  void set(Params& params) const {
    params.set("x.scales", std::vector<double>{x_scale});
    params.set("x.zeros", std::vector<int64_t>{x_zero});
    params.set("weight.scales", weight_scales);
    params.set("weight.zeros", std::vector<int64_t>{weight_zero});
    for (const auto& [each, name] : kRoundings)
      if (each == rounding && rounding != Rounding::half_even_fp32) params.set("q_rounding", std::string(name));
    params.set("bias.scales", bias_scales());
    params.set("y.scales", std::vector<double>{y_scale});
    params.set("y.zeros", std::vector<int64_t>{y_zero});
  }
  /// The real that a sum of integers is.
  double real(int64_t sum, int64_t filter) const { return static_cast<double>(sum) * x_scale * weight_scale(filter); }
  /// The i8 that a sum of integers becomes.
  double result(int64_t sum, int64_t filter) const {
    EXPECT_LE(std::abs(sum), int64_t{1} << 31);
    const double factor = factor_between(x_scale * weight_scale(filter), y_scale, rounding);
    const double steps =
        rounding == Rounding::half_even_fp32
            ? std::nearbyint(static_cast<float>(sum) * static_cast<float>(factor))
            : static_cast<double>(requantize(static_cast<int32_t>(sum), requant_of(factor, rounding), rounding));
    const double y = steps + y_zero;
    return std::clamp(y, static_cast<double>(low), static_cast<double>(high));
  }
};

/// A sum of a layer's result `y`, of these integers, with another value, at least 0: the other value, the steps, and
/// what comes out.
struct SumBehind {
  std::vector<double> other, expected;
  std::vector<Step> steps;

  SumBehind(const Integers& integers, const std::vector<double>& y, int input)
      : other(random_integers(static_cast<int64_t>(y.size()), 7)) {
    const double other_scale = integers.y_scale * 0.7, scale = integers.y_scale * 1.9;
    const int other_zero = 11, zero = -20;
    for (size_t k = 0; k < y.size(); ++k) {
      const float sum = real_of(static_cast<int8_t>(y[k]), integers.y_scale, integers.y_zero) +
                        real_of(static_cast<int8_t>(other[k]), other_scale, other_zero);
      expected.push_back(std::max<double>(integer_of<int8_t>(sum, scale, zero), zero));
    }
    const std::vector<double> values = {
        integers.y_scale, double(integers.y_zero), other_scale, double(other_zero), scale, double(zero)};
    steps = {{std::string(kSumOfI8), input, values}, {"relu", -1, {}}};
  }
};

}  // namespace hetnn::kernels::testing
