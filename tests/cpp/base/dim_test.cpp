// Canonical forms, evaluation and the text form of dims.
#include "hetnn/base/dim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"

namespace hetnn {
namespace {

const Dim h = Dim::symbol("h"), w = Dim::symbol("w");

TEST(Dim, EqualSumsAndProductsHaveOneForm) {
  EXPECT_EQ(h + w - h, w);
  EXPECT_EQ((h + 1) * (h - 1), h * h - 1);
  EXPECT_EQ((h - h).value(), 0);
  EXPECT_EQ((2 * h + 3 * w - 1).to_string(), "2*h + 3*w - 1");
}

TEST(Dim, DivisionPullsOutWhatDividesExactly) {
  EXPECT_EQ(floor_div(2 * h + 3, 2), h + 1);
  EXPECT_EQ(floor_div(h * w, w), h);
  EXPECT_EQ(floor_div(floor_div(h, 2) + 1, 2), floor_div(h + 2, 4));
  EXPECT_EQ(mod(4 * h + 6, 4), 2);
  EXPECT_EQ(ceil_div(h - 2, 2), -floor_div(2 - h, 2));
  EXPECT_EQ(ceil_div(h, 3), floor_div(h + 2, 3));
  EXPECT_EQ(floor_div(1 - 2 * h * w - w, 6), -floor_div(2 * h * w + w + 4, 6));
  EXPECT_EQ(max(h + 1, h), h + 1);
}

TEST(Dim, ShowsWhatSizesCannotMakeNegative) {
  for (const Dim& shown : {Dim(0), h, h * w + 2, floor_div(h, 2) + min(h, w), mod(h - 9, 4), max(h - 3, 0)})
    EXPECT_TRUE(shown.never_negative()) << shown;
  for (const Dim& open : {Dim(-1), h - 1, h - w, -h, floor_div(h - 1, 2), min(h - 1, w), max(h - 3, w - 3)})
    EXPECT_FALSE(open.never_negative()) << open;
}

TEST(Dim, EveryFormEvaluatesAsTheIntegersDo) {
  std::mt19937 random(7);
  auto draw = [&](int lo, int hi) { return static_cast<int64_t>(std::uniform_int_distribution<int>(lo, hi)(random)); };
  for (int round = 0; round < 3000; ++round) {
    const int64_t hv = draw(1, 40), wv = draw(1, 40);
    const Bindings bindings = {{"h", hv}, {"w", wv}};
    Dim dim = draw(0, 1) ? h : w;
    int64_t expected = dim.evaluate(bindings);
    for (int step = 0; step < 5; ++step) {
      const int64_t c = draw(1, 6);
      switch (draw(0, 6)) {
        case 0:
          dim = dim + c, expected += c;
          break;
        case 1:
          dim = dim * c, expected *= c;
          break;
        case 2:
          dim = floor_div(dim, c),
          expected = static_cast<int64_t>(std::floor(static_cast<double>(expected) / static_cast<double>(c)));
          break;
        case 3:
          dim = mod(dim, c), expected = ((expected % c) + c) % c;
          break;
        case 4:
          dim = dim - w * c, expected -= wv * c;
          break;
        case 5:
          dim = max(dim, h), expected = std::max(expected, hv);
          break;
        default:
          dim = min(dim, w + c), expected = std::min(expected, wv + c);
      }
      ASSERT_EQ(dim.evaluate(bindings), expected) << dim;
      ASSERT_EQ(Dim::parse(dim.to_string()), dim) << dim;
    }
  }
}

TEST(Dim, SaysWhatItCannotRead) {
  EXPECT_ERROR(Dim::parse("h + "), InvalidModel, "'h + '");
  EXPECT_ERROR(h.evaluate({}), InvalidModel, "the symbol 'h'");
  EXPECT_ERROR(floor_div(h, 0), InvalidModel, "divided by zero");
  EXPECT_ERROR(Dim(INT64_MAX) + 1, InvalidModel, "64-bit");
}

TEST(Dim, DividesTheLeastIntegerByMinusOne) {
  const Dim least = Dim(INT64_MIN), n = Dim::symbol("n");
  EXPECT_ERROR(floor_div(least, -1), InvalidModel, "a dimension exceeds 64-bit integers");
  EXPECT_EQ(mod(least, -1), Dim(0));
  EXPECT_ERROR(floor_div(least * n, -1), InvalidModel, "a dimension exceeds 64-bit integers");
  const Bindings bindings = {{"n", INT64_MIN}, {"m", -1}};
  EXPECT_ERROR(floor_div(n, Dim::symbol("m")).evaluate(bindings), InvalidModel, "exceeds 64-bit integers");
  EXPECT_EQ(mod(n, Dim::symbol("m")).evaluate(bindings), 0);
  EXPECT_EQ((least * n + least).to_string(), "-9223372036854775808*n - 9223372036854775808");
}

TEST(Dim, HasABoundedNumberOfParts) {
  Dim product = 1, sum = 0, square = Dim::symbol("s");
  const Dim s = Dim::symbol("s");
  const auto multiply = [&] {
    for (int k = 3; k < 30; ++k) product = product * (s + floor_div(s, k));
  };
  EXPECT_ERROR(multiply(), InvalidModel, "a dimension has more than 256 parts");
  const auto add = [&] {
    for (int k = 0; k < 20'000; ++k) sum = sum + Dim::symbol("s" + std::to_string(k));
  };
  EXPECT_ERROR(add(), InvalidModel, "a dimension has more than 256 parts");
  const auto nest = [&] {
    for (int k = 0; k < 64; ++k) square = square * floor_div(square, 3);
  };
  EXPECT_ERROR(nest(), InvalidModel, "a dimension has more than 256 parts");
}

}  // namespace
}  // namespace hetnn
