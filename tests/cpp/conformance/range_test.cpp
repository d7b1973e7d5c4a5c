// Ranges hold what elementwise functions give, by their meaning in f32 and f64 and by their kernels.
#include "hetnn/passes/range.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "hetnn/kernels/block_ops.h"
#include "hetnn/ops/elementwise/formula.h"

namespace hetnn {
namespace {

using passes::Range;

constexpr size_t kPoints = 256;  // in each range

// HETNN_RANGE_POINTS: of each function; `make sweep-ranges` takes ten million.
size_t points_of_each() {
  const char* given = std::getenv("HETNN_RANGE_POINTS");
  return given ? std::strtoul(given, nullptr, 10) : 50'000;
}

class Points {
 public:
  explicit Points(unsigned seed) : random_(seed) {}

  // A number where functions change, or of any size.
  float number() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    static constexpr float kEdges[] = {
        0,       -0.0F, 1,      -1,   0.5F,  -0.5F,          2,        -3,      3,     6,
        20,      -20,   88,     -88,  104,   -104,           1.57F,    -1.57F,  3.14F, 1e-40F,
        -1e-40F, 1e38F, -1e38F, kInf, -kInf, 1.1754944e-38F, 16777216, 1 / 3.0F};
    const auto kind = random_() % 8;
    if (kind == 0) return kEdges[random_() % std::size(kEdges)];
    if (kind == 1) {
      const float any = std::bit_cast<float>(static_cast<uint32_t>(random_()));
      return std::isnan(any) ? 0 : any;
    }
    return std::uniform_real_distribution<float>(-1, 1)(random_) * std::exp2(static_cast<float>(kind) * 2 - 6);
  }

  Range range() {
    const float a = number(), b = random_() % 8 == 0 ? a : number();
    return {std::min(a, b), std::max(a, b), random_() % 4 == 0};
  }

  float within(const Range& range) {
    const auto lo = static_cast<float>(range.lo), hi = static_cast<float>(range.hi);
    const auto kind = random_() % 16;
    if (kind == 0) return lo;
    if (kind == 1) return hi;
    if (kind == 2 && range.nan) return std::numeric_limits<float>::quiet_NaN();
    if (kind == 3) return std::clamp(std::nextafter(lo, hi), lo, hi);
    if (kind < 10) return std::clamp(number(), lo, hi);
    constexpr float kFar = 1e30F;
    const float from = std::clamp(lo, -kFar, kFar), to = std::clamp(hi, -kFar, kFar);
    return from < to ? std::clamp(std::uniform_real_distribution<float>(from, to)(random_), lo, hi) : lo;
  }

 private:
  std::mt19937_64 random_;
};

bool lies_in(double value, const Range& range) {
  return std::isnan(value) ? range.nan : range.lo <= value && value <= range.hi;
}

TEST(Range, HoldsWhatEveryFunctionGives) {
  const size_t rounds = (points_of_each() + kPoints - 1) / kPoints;
  for (size_t f = 0; f < ops::functions().size(); ++f) {
    const auto function = static_cast<ops::Function>(f);
    const ops::FunctionDef& def = ops::functions()[f];
    const kernels::BlockFunction kernel = kernels::block_function(function);
    Points points(static_cast<unsigned>(f));
    for (size_t round = 0; round < rounds; ++round) {
      const Range x = points.range(), y = points.range();
      float c0 = points.number(), c1 = points.number();
      if (c0 > c1) std::swap(c0, c1);
      if (std::isinf(c0) && c0 > 0) c0 = 1;
      const Range found = passes::range_of(function, x, y, Range::constant(c0), Range::constant(c1));
      float xs[kPoints], ys[kPoints], lanes[kPoints];
      for (size_t k = 0; k < kPoints; ++k) {
        xs[k] = points.within(x);
        ys[k] = points.within(y);
      }
      kernels::Block block{.in = xs, .ld_in = kPoints, .out = lanes, .ld_out = kPoints, .rows = 1, .cols = kPoints};
      block.operand = ys;
      block.ld_operand = kPoints;
      block.col_step = 1;
      block.c0 = c0;
      block.c1 = c1;
      kernel(block);
      for (size_t k = 0; k < kPoints; ++k) {
        const double single = ops::apply<float>(function, xs[k], ys[k], c0, c1);
        const auto wide = ops::apply<double>(function, xs[k], ys[k], c0, c1);
        for (const double value : {static_cast<double>(lanes[k]), single, wide}) {
          ASSERT_TRUE(lies_in(value, found))
              << def.name << " of " << xs[k] << " in [" << x.lo << ", " << x.hi << "] and " << ys[k] << " in [" << y.lo
              << ", " << y.hi << "], constants " << c0 << " " << c1 << ": " << value << " (lanes " << lanes[k]
              << ", f32 " << single << ", f64 " << wide << ") is not in [" << found.lo << ", " << found.hi << "]"
              << (found.nan ? " or NaN" : "");
        }
      }
    }
  }
}

// What legalization asks of activations: as narrow as they are.
TEST(Range, IsNarrowWhereTheFormulaIs) {
  const auto of = [](const char* name, Range x) {
    return passes::range_of(*ops::function_from_name(name), x, {}, Range::constant(-2), Range::constant(3));
  };
  const Range any;
  const auto expect = [&](const char* name, const Range& x, double lo, double hi) {
    const Range found = of(name, x);
    EXPECT_LE(found.lo, lo) << name;
    EXPECT_GE(found.hi, hi) << name;
    if (std::isfinite(lo)) {
      EXPECT_NEAR(found.lo, lo, 1e-5 * (1 + std::abs(lo))) << name;
    }
    if (std::isfinite(hi)) {
      EXPECT_NEAR(found.hi, hi, 1e-5 * (1 + std::abs(hi))) << name;
    }
  };
  const double inf = std::numeric_limits<double>::infinity();
  expect("relu", any, 0, inf);
  expect("clamp", any, -2, 3);
  expect("sigmoid", any, 0, 1);
  expect("hardsigmoid", any, 0, 1);
  expect("tanh", any, -1, 1);
  expect("erf", any, -1, 1);
  expect("hardswish", {-5, 4}, -2.5, 4);
  expect("elu", {-100, 7}, 0, 7);
  expect("leaky_relu", {-2, 7}, 0, 7);
  expect("silu", {-100, 7}, -0.2784645, 6.993623);
  expect("gelu", {-3, 3}, -1.5, 2.99595);
  expect("sin", any, -1, 1);
  expect("cos", {0.5, 1}, std::cos(1.0), std::cos(0.5));
  expect("abs", {-3, 2}, 0, 3);
  expect("sign", {1, 2, false}, 1, 1);
  expect("sign", {1, 2}, 0, 1);
}

}  // namespace
}  // namespace hetnn
