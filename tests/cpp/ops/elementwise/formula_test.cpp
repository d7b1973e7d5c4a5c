// The formulas over values that are no numbers: slopes, complex numbers and expressions.
#include "hetnn/ops/elementwise/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <map>

#include "hetnn/ops/elementwise/complex.h"
#include "hetnn/ops/elementwise/dual.h"
#include "hetnn/ops/elementwise/readings.h"

namespace hetnn::ops {
namespace {

constexpr double kPoints[] = {-4.3, -2.7, -1.3, -0.6, -0.2, 0.3, 0.45, 0.8, 1.4, 2.6, 3.7, 21.5};

// By the difference of two values on each side; NaN where it depends on the step, as at a bend.
double slope_of(const std::function<double(double)>& f, double x) {
  const auto difference = [&](double step) { return (f(x + step) - f(x - step)) / (2 * step); };
  const double coarse = difference(2e-5), fine = difference(1e-5);
  return std::abs(coarse - fine) < 1e-5 * (1 + std::abs(fine)) ? (4 * fine - coarse) / 3 : std::nan("");
}

TEST(Formula, DualNumbersHaveTheSlopeOfEveryFunction) {
  constexpr double kC0 = 0.31, kC1 = 1.9;
  const auto constant = [](double v) { return Dual<double>{v, 0}; };
  for (size_t k = 0; k < functions().size(); ++k) {
    const auto function = static_cast<Function>(k);
    const std::vector<Expression> known = slopes_of(function);
    int compared = 0;
    std::vector<double> first(std::begin(kPoints), std::end(kPoints));
    first.insert(first.end(), {2, 4});  // some take whole numbers alone
    for (const double x : first) {
      for (const double y : kPoints) {
        for (int by = 0; by < functions()[k].operands; ++by) {
          if (!known[static_cast<size_t>(by)]) continue;  // the row's words say that there is none
          const Dual<double> dx = {x, by == 0 ? 1.0 : 0.0}, dy = {y, by == 1 ? 1.0 : 0.0};
          const Dual<double> found = apply(function, dx, dy, constant(kC0), constant(kC1));
          const double value = apply(function, x, y, kC0, kC1);
          if (!std::isfinite(value)) continue;
          ASSERT_EQ(found.value, value) << functions()[k].name;
          const double expected = slope_of(
              [&](double at) { return by == 0 ? apply(function, at, y, kC0, kC1) : apply(function, x, at, kC0, kC1); },
              by == 0 ? x : y);
          if (!std::isfinite(expected)) continue;
          ASSERT_NEAR(found.slope, expected, 2e-6 * (1 + std::abs(expected)))
              << functions()[k].name << " by operand " << by << " at " << x << ", " << y;
          ++compared;
        }
      }
    }
    EXPECT_EQ(compared > 20, std::ranges::any_of(known, [](const auto& each) { return bool(each); }))
        << functions()[k].name;
  }
}

TEST(Formula, ComplexNumbersAreThoseOfTheLibrary) {
  using C = std::complex<double>;
  const std::map<std::string_view, C (*)(C)> expected = {
      {"exp", [](C z) { return std::exp(z); }},
      {"expm1", [](C z) { return std::exp(z) - 1.0; }},
      {"exp2", [](C z) { return std::pow(C(2), z); }},
      {"log", [](C z) { return std::log(z); }},
      {"log2", [](C z) { return std::log(z) / std::log(2.0); }},
      {"log10", [](C z) { return std::log10(z); }},
      {"log1p", [](C z) { return std::log(1.0 + z); }},
      {"sqrt", [](C z) { return std::sqrt(z); }},
      {"rsqrt", [](C z) { return 1.0 / std::sqrt(z); }},
      {"reciprocal", [](C z) { return 1.0 / z; }},
      {"sigmoid", [](C z) { return 1.0 / (1.0 + std::exp(-z)); }},
      {"silu", [](C z) { return z / (1.0 + std::exp(-z)); }},
      {"sin", [](C z) { return std::sin(z); }},
      {"cos", [](C z) { return std::cos(z); }},
      {"tan", [](C z) { return std::tan(z); }},
      {"sinh", [](C z) { return std::sinh(z); }},
      {"cosh", [](C z) { return std::cosh(z); }},
      {"tanh", [](C z) { return std::tanh(z); }},
      {"asin", [](C z) { return std::asin(z); }},
      {"acos", [](C z) { return std::acos(z); }},
      {"atan", [](C z) { return std::atan(z); }},
      {"asinh", [](C z) { return std::asinh(z); }},
      {"acosh", [](C z) { return std::acosh(z); }},
      {"atanh", [](C z) { return std::atanh(z); }},
      {"abs", [](C z) { return C(std::abs(z)); }},
      {"neg", [](C z) { return -z; }},
  };
  for (const auto& [name, of] : expected) {
    for (const double re : kPoints) {
      for (const double im : kPoints) {
        const Complex<double> z = {re, im}, found = apply(*function_from_name(name), z, z, z, z);
        const C known = of({re, im});
        EXPECT_LT(std::abs(C(found.re, found.im) - known), 1e-10 * (1 + std::abs(known))) << name << re << " " << im;
      }
    }
  }
}

TEST(Formula, AllThatComplexNumbersHaveIsCompared) {
  std::vector<std::string_view> taken;
  for (size_t k = 0; k < functions().size(); ++k) {
    const std::vector<Expression> parts = complex_parts_of(static_cast<Function>(k));
    if (parts[0] && parts[1]) taken.push_back(functions()[k].name);
  }
  const std::vector<std::string_view> known = {
      "silu", "sigmoid", "tanh",  "gelu_tanh", "abs",   "neg",   "sqrt",  "rsqrt", "reciprocal", "exp",  "log",
      "sin",  "cos",     "add",   "sub",       "mul",   "div",   "pow",   "tan",   "asin",       "acos", "atan",
      "sinh", "cosh",    "asinh", "acosh",     "atanh", "expm1", "log1p", "log2",  "log10",      "exp2"};
  EXPECT_EQ(taken, known);
}

TEST(Formula, ExpressionsAreEquations) {
  const auto text = [](const char* name) { return to_string(value_of(*function_from_name(name))); };
  EXPECT_EQ(text("relu"), "maximum(0, x)");
  EXPECT_EQ(text("leaky_relu"), "x where x > 0, else x * negative_slope");
  EXPECT_EQ(text("sub"), "x - y");
  EXPECT_EQ(text("rsqrt"), "1 / sqrt(x)");
  EXPECT_EQ(text("sign"), "1 where x > 0, else -1 where 0 > x, else 0");
  EXPECT_EQ(to_string(slopes_of(Function::mul)[1]), "x");
  EXPECT_EQ(to_string(slopes_of(Function::tanh)[0]), "1 - tanh(x) * tanh(x)");
  EXPECT_EQ(to_string(slopes_of(Function::div)[0]), "1 / y");
}

}  // namespace
}  // namespace hetnn::ops
