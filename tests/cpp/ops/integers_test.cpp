// Quantized calls on their integers, against the formulas of docs/numerics.md written out.
#include "hetnn/ops/integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "expect_error.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

struct Operand8 {
  Quant quant;
  std::vector<int64_t> shape;
  std::vector<int8_t> values;
};

Operand8 random_operand(std::mt19937& random, std::vector<int64_t> shape, Quant quant) {
  Operand8 out{std::move(quant), std::move(shape), {}};
  int64_t elems = 1;
  for (int64_t size : out.shape) elems *= size;
  std::uniform_int_distribution<int> any(-128, 127);
  for (int64_t k = 0; k < elems; ++k) out.values.push_back(static_cast<int8_t>(any(random)));
  return out;
}

// The first output of a call on i8 operands, and maybe a bias of i32.
Tensor run(std::string_view op, const std::vector<Operand8>& operands, const Quant& result, std::string_view rounding,
           Attrs attrs = {}, const std::optional<std::pair<Tensor, Quant>>& bias = {}) {
  std::vector<Type> types;
  std::vector<std::optional<Tensor>> inputs;
  for (const Operand8& each : operands) {
    types.push_back({DType::i8, {each.shape.begin(), each.shape.end()}, each.quant});
    inputs.emplace_back(Tensor::of<int8_t>(each.shape, each.values));
  }
  if (bias) {
    types.push_back({DType::i32, {bias->first.shape().begin(), bias->first.shape().end()}, bias->second});
    inputs.emplace_back(bias->first);
  }
  Call call;
  call.op = &OpTable::global().get(op);
  call.attrs = std::move(attrs);
  call.name = "y";
  for (const Type& type : types) call.inputs.push_back({&type, nullptr});
  for (auto& [name, value] : quant_attrs(result)) call.attrs.insert_or_assign(name, value);
  if (!rounding.empty()) call.attrs.insert_or_assign(std::string(kQuantRounding), std::string(rounding));
  complete(call);
  return evaluate(call, inputs, {}).front();
}

int8_t saturated(int64_t value) { return static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127)); }

class Roundings : public testing::TestWithParam<std::pair<Rounding, std::string_view>> {};
INSTANTIATE_TEST_SUITE_P(All, Roundings, testing::ValuesIn(kRoundings),
                         [](const auto& each) { return std::string(each.param.second); });

TEST_P(Roundings, LinearLayersSumIntegers) {
  const auto [rounding, name] = GetParam();
  std::mt19937 random(1);
  const Operand8 x = random_operand(random, {5, 40}, {{0.013}, {-7}}),
                 w = random_operand(random, {3, 40}, {{0.002, 0.03, 0.0007}});
  const std::vector<int32_t> bias = {1000, -20, 3};
  const Quant y{{0.11}, {4}};
  const Tensor out = run("linear", {x, w}, y, name, {},
                         {{Tensor::of<int32_t>({3}, bias), {{0.013 * 0.002, 0.013 * 0.03, 0.013 * 0.0007}}}});
  for (size_t i = 0; i < 5; ++i) {
    for (size_t m = 0; m < 3; ++m) {
      int32_t sum = bias[m];
      for (size_t k = 0; k < 40; ++k) sum += (x.values[i * 40 + k] + 7) * w.values[m * 40 + k];
      const Requant factor = requant_of(x.quant.scale() * w.quant.scale(m) / y.scale(), rounding);
      EXPECT_EQ(out.values<int8_t>()[i * 3 + m], saturated(int64_t{requantize(sum, factor, rounding)} + 4));
    }
  }
}

TEST_P(Roundings, WeightsMayHaveZeroPointsAndOtherAxes) {
  const auto [rounding, name] = GetParam();
  std::mt19937 random(2);
  const Operand8 x = random_operand(random, {4, 6}, {{0.02}, {3}}),
                 w = random_operand(random, {6, 2}, {{0.01, 0.04}, {5, -9}, 1});
  const Quant y{{0.2}, {-1}};
  const Tensor out = run("matmul", {x, w}, y, name);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      int32_t sum = 0;
      for (size_t k = 0; k < 6; ++k) sum += (x.values[i * 6 + k] - 3) * (w.values[k * 2 + j] - w.quant.zero_point(j));
      const Requant factor = requant_of(0.02 * w.quant.scale(j) / 0.2, rounding);
      EXPECT_EQ(out.values<int8_t>()[i * 2 + j], saturated(int64_t{requantize(sum, factor, rounding)} - 1));
    }
  }
}

TEST_P(Roundings, SumsAreFormedAtACommonScale) {
  const auto [rounding, name] = GetParam();
  std::mt19937 random(3);
  const Operand8 a = random_operand(random, {200}, {{0.05}, {3}}), b = random_operand(random, {200}, {{0.013}, {-8}});
  const Quant y{{0.07}, {2}};
  for (const bool product : {false, true}) {
    const Tensor out = run(product ? "mul" : "add", {a, b}, y, name);
    for (size_t k = 0; k < 200; ++k) {
      const int32_t x = a.values[k] - 3, z = b.values[k] + 8;
      int32_t want = 0;
      if (product) {
        want = requantize(x * z, requant_of(0.05 * 0.013 / 0.07, rounding), rounding);
      } else {
        const int32_t sum = requantize(x * (1 << 20), requant_of(0.5, rounding), rounding) +
                            requantize(z * (1 << 20), requant_of(0.013 / 0.1, rounding), rounding);
        want = requantize(sum, requant_of(0.1 / (0.07 * (1 << 20)), rounding), rounding);
      }
      EXPECT_EQ(out.values<int8_t>()[k], saturated(int64_t{want} + 2)) << k;
    }
  }
}

TEST_P(Roundings, SlopesAreProductsBelowZero) {
  const auto [rounding, name] = GetParam();
  std::mt19937 random(4);
  const Operand8 x = random_operand(random, {1, 3, 50}, {{0.05}, {10}}),
                 a = random_operand(random, {3}, {{0.004}, {1}});
  const Quant y{{0.03}, {-20}};
  const Tensor out = run("prelu", {x, a}, y, name);
  for (size_t k = 0; k < 150; ++k) {
    const int32_t step = x.values[k] - 10, slope = a.values[k / 50] - 1;
    const int32_t want = step >= 0 ? requantize(step, requant_of(0.05 / 0.03, rounding), rounding)
                                   : requantize(step * slope, requant_of(0.05 * 0.004 / 0.03, rounding), rounding);
    EXPECT_EQ(out.values<int8_t>()[k], saturated(int64_t{want} - 20)) << k;
  }
}

TEST_P(Roundings, SoftmaxIsComputedInRows) {
  std::mt19937 random(5);
  const Operand8 x = random_operand(random, {2, 7, 3}, {{0.05}, {10}});
  const Quant y{{1.0 / 256}, {-128}};
  const Tensor out = run("softmax", {x}, y, GetParam().second, {{"axis", Dim(1)}});
  const SoftmaxTable table = softmax_table(0.05, 1.0 / 256);
  for (size_t n = 0; n < 2; ++n) {
    for (size_t c = 0; c < 3; ++c) {
      std::vector<int32_t> row;
      for (size_t k = 0; k < 7; ++k) row.push_back(x.values[(n * 7 + k) * 3 + c]);
      softmax_row(table, -128, row, row);
      for (size_t k = 0; k < 7; ++k) EXPECT_EQ(out.values<int8_t>()[(n * 7 + k) * 3 + c], row[k]);
    }
  }
}

TEST_P(Roundings, NormalizationIsComputedInRows) {
  std::mt19937 random(6);
  const Operand8 x = random_operand(random, {5, 2, 8}, {{0.05}, {10}});
  const Quant y{{0.03}, {7}};
  const Tensor out = run("layer_norm", {x}, y, GetParam().second, {{"axes", Dim(2)}, {"eps", 0.01}});
  const std::vector<double> ones(16, 1.0), zeros(16, 0.0);
  const NormalFactors factors = normal_factors(ones, zeros, 0.01, 0.05, 0.03).value();
  for (size_t n = 0; n < 5; ++n) {
    std::vector<int32_t> row(x.values.begin() + static_cast<ptrdiff_t>(n * 16),
                             x.values.begin() + static_cast<ptrdiff_t>(n * 16 + 16));
    normalize_row(factors.channels, factors.eps, factors.shift, 7, row, row);
    for (size_t k = 0; k < 16; ++k) EXPECT_EQ(out.values<int8_t>()[n * 16 + k], row[k]);
  }
  EXPECT_ERROR(run("layer_norm", {x}, y, GetParam().second, {{"eps", 1e30}}), InvalidModel,
               "weight, bias and eps that fit 32 bits");
}

TEST(Integers, MeansTakeIntegersAsTheyAre) {
  const Quant quant{{0.1}, {-3}};
  const Operand8 x{quant, {1, 1, 2, 4}, {-3, 4, 127, 127, -4, 2, 126, 127}};
  const Tensor out =
      run("avg_pool2d", {x}, quant, "double", {{"kernel", std::vector<Dim>{2, 2}}, {"stride", std::vector<Dim>{2, 2}}});
  // (-3 + 4 - 4 + 2) / 4 = -0.25, 507 / 4 = 126.75
  EXPECT_THAT(out.values<int8_t>(), testing::ElementsAre(0, 127));
}

TEST(Integers, WithoutARoundingElementsAreReals) {
  const Operand8 a{{{0.5}}, {2}, {1, 3}}, b{{{0.25}}, {2}, {1, 1}};
  EXPECT_THAT(run("add", {a, b}, {{0.5}}, "").values<int8_t>(), testing::ElementsAre(2, 4));  // 1.5 and 3.5, to even
}

TEST(Integers, OfSixteenBitsSumIn48) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> any(-32768, 32767), small(-127, 127);
  std::vector<int16_t> x;
  std::vector<int8_t> w;
  for (int k = 0; k < 300; ++k)
    x.push_back(static_cast<int16_t>(any(random))), w.push_back(static_cast<int8_t>(small(random)));
  const Type types[] = {{DType::i16, {1, 300}, Quant{{0.001}}}, {DType::i8, {1, 300}, Quant{{0.02}}}};
  Call call;
  call.op = &OpTable::global().get("linear");
  call.name = "y";
  call.inputs = {{&types[0], nullptr}, {&types[1], nullptr}};
  call.attrs = {{std::string(kQuantScale), std::vector<double>{0.005}},
                {std::string(kQuantRounding), std::string("double")}};
  complete(call);
  const std::vector<std::optional<Tensor>> inputs = {Tensor::of<int16_t>({1, 300}, x), Tensor::of<int8_t>({1, 300}, w)};
  int64_t sum = 0;
  for (size_t k = 0; k < 300; ++k) sum += int64_t{x[k]} * w[k];
  // 0.001 * 0.02 / 0.005 = 0.004 = m 2^-7, m of 15 bits
  const auto multiplier = static_cast<int64_t>(std::llround(0.004 * 128 * 32768));
  const int64_t want = (sum * multiplier + (int64_t{1} << 21)) >> 22;
  EXPECT_EQ(evaluate(call, inputs, {}).front().values<int16_t>()[0], std::clamp<int64_t>(want, -32768, 32767));
}

TEST(Integers, AWrongRoundingIsRefused) {
  const Operand8 a{{{0.5}}, {1}, {1}};
  EXPECT_ERROR(run("relu", {a}, {{0.5}}, "up"), InvalidModel, "half_even_fp32; got 'up'", "quant_c5");
}

TEST(Integers, AFactorBeyondWhatIntegersAreMultipliedByIsRefused) {
  const Operand8 a{{{0.5}}, {1}, {1}}, large{{{1e20}}, {1}, {1}};
  const char* const why = "the factor between two scales must be in (0, 2^30); got ";
  EXPECT_ERROR(run("relu", {large}, {{0.5}}, "single"), InvalidModel, why, "quant_c7");
  EXPECT_ERROR(run("add", {a, large}, {{0.5}}, "double"), InvalidModel, why, "quant_c7");
  EXPECT_ERROR(run("mul", {a, a}, {{1e-12}}, "double"), InvalidModel, why, "quant_c7");
}

TEST(QuantTypes, ZeroPointsLieInTheirType) {
  const auto fault = [](const Type& type) { return quant_fault(type) ? std::string(quant_fault(type)->label) : ""; };
  EXPECT_EQ(fault({DType::u8, {2}, Quant{{0.1}, {200}}}), "");
  EXPECT_EQ(fault({DType::i8, {2}, Quant{{0.1}, {200}}}), "quant_c3");
  EXPECT_EQ(fault({DType::u8, {2}, Quant{{0.1}, {-1}}}), "quant_c3");
  EXPECT_EQ(fault({DType::i4, {2}, Quant{{0.1}, {8}}}), "quant_c3");
  EXPECT_EQ(fault({DType::i8, {2, 3}, Quant{{0.1, 0.2, 0.3}, {0}, 1}}), "");
  EXPECT_EQ(fault({DType::i8, {2, 3}, Quant{{0.1, 0.2, 0.3}}}), "quant_c2");
  EXPECT_EQ(fault({DType::i8, {2, 3}, Quant{{0.1, 0.2}, {0, 1, 2}}}), "quant_c2");
  EXPECT_EQ(fault({DType::i8, {2, 3}, Quant{{0.1, 0.2}, {0}, 2}}), "quant_c2");
  EXPECT_EQ(fault({DType::u16, {2}, Quant{{0.1}}}), "quant_c1");
  EXPECT_EQ(to_string(Type{DType::u8, {8, 2}, Quant{{0.1, 0.2}, {3, 4}, 1}}), "u8{0.1,0.2:3,4@1}[8,2]");
}

}  // namespace
}  // namespace hetnn::ops
