// n-ary sums, products and extremes against chains of two-operand steps.
#include "hetnn/kernels/elementwise/nary.h"

#include <cmath>

#include "../kernel_runner.h"
#include "expect_error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/elementwise/elementwise.h"

namespace hetnn::kernels::testing {
namespace {

std::vector<Tensor> inputs_of(int count, const std::vector<int64_t>& shape) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < count; ++i) inputs.push_back(random_plain(shape, static_cast<unsigned>(i + 1)));
  return inputs;
}

TEST(Nary, SumsAnyNumberWithAnyFanIn) {
  for (const int count : {1, 2, 3, 4, 8, 17, 64, 100})
    for (const int64_t fan_in : {0, 2, 3, 8, 16})
      for (const int64_t elems : {1, 5, 67, 5000}) {
        const auto inputs = inputs_of(count, {elems});
        std::vector<double> expected(static_cast<size_t>(elems));
        for (const Tensor& x : inputs)
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += x.values[i];
        check_kernel("nary", inputs, {inputs[0].view}, {{"op", "add"}, {"fan_in", fan_in}}, {expected}, 2e-6,
                     "sum of " + std::to_string(count));
        if (HasFatalFailure()) return;
      }
}

TEST(Nary, ProductsAndExtremes) {
  for (const int count : {2, 5, 20})
    for (const std::string op : {"mul", "maximum", "minimum"}) {
      auto inputs = inputs_of(count, {3, 41});
      inputs.back().values[7] = std::nan("");
      inputs[0].values[9] = std::nan("");
      std::vector<double> expected = inputs[0].values;
      for (int k = 1; k < count; ++k)
        for (size_t i = 0; i < expected.size(); ++i) {
          const double a = expected[i], b = inputs[static_cast<size_t>(k)].values[i];
          expected[i] = op == "mul"                      ? a * b
                        : std::isnan(a) || std::isnan(b) ? std::nan("")
                        : op == "maximum"                ? std::max(a, b)
                                                         : std::min(a, b);
        }
      check_kernel("nary", inputs, {inputs[0].view}, {{"op", op}, {"fan_in", int64_t{4}}}, {expected}, 1e-6,
                   "nary " + op);
      if (HasFatalFailure()) return;
    }
}

TEST(Nary, WeighsWithSpecialCoefficients) {
  const std::vector<std::vector<double>> all = {
      {1, -1, 0, 0.5, 2}, {0, 0, 0, 0, 0}, {-1, -1, -1, -1, -1}, {0, 0, 1, 0, 0}, {0.25, 0.5, 1, -1, 0}};
  for (const auto& coefficients : all) {
    auto inputs = inputs_of(5, {77});
    std::vector<double> expected(77);
    for (size_t k = 0; k < 5; ++k)
      for (size_t i = 0; i < 77; ++i) expected[i] += coefficients[k] * inputs[k].values[i];
    for (const int64_t fan_in : {2, 3, 16}) {
      check_kernel("nary", inputs, {inputs[0].view}, {{"coefficients", coefficients}, {"fan_in", fan_in}}, {expected},
                   1e-6, "weighted sum");
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Nary, AnOperandTimesZeroIsNotRead) {
  auto inputs = inputs_of(3, {20});
  for (double& v : inputs[1].values) v = std::nan("");
  std::vector<double> expected(20);
  for (size_t i = 0; i < 20; ++i) expected[i] = inputs[0].values[i] - inputs[2].values[i];
  const std::vector<double> coefficients = {1, 0, -1};
  check_kernel("nary", inputs, {inputs[0].view}, {{"coefficients", coefficients}}, {expected}, 1e-7, "skips");
  const auto strict =
      run_kernel("nary", inputs, {inputs[0].view}, {{"coefficients", coefficients}, {"deterministic", int64_t{1}}});
  for (const double v : strict[0]) EXPECT_TRUE(std::isnan(v));
}

TEST(Nary, DeterministicEqualsTheChainBitForBit) {
  const std::vector<double> coefficients = {0.3, 1, -1, 1.7, 1, -0.2, 1, 1, -1, 0.1, 1};
  const auto inputs = inputs_of(static_cast<int>(coefficients.size()), {301});
  std::vector<double> expected(301);
  for (size_t i = 0; i < expected.size(); ++i) {
    float acc = 0;
    for (size_t k = 0; k < coefficients.size(); ++k) {
      const auto x = static_cast<float>(inputs[k].values[i]);
      const auto c = static_cast<float>(coefficients[k]);
      const float term = x * c;
      acc = k == 0 ? term : acc + term;
    }
    expected[i] = static_cast<double>(acc);
  }
  for (const std::string& isa : available_isas()) {
    restrict_isa(isa);
    for (int64_t fan_in = 2; fan_in <= 16; ++fan_in)
      expect_same(run_kernel("nary", inputs, {inputs[0].view},
                             {{"coefficients", coefficients}, {"fan_in", fan_in}, {"deterministic", int64_t{1}}})[0],
                  expected, "deterministic on " + isa);
  }
  restrict_isa("");
}

TEST(Nary, BroadcastsMixesLayoutsAndRunsAnEpilogue) {
  const std::vector<int64_t> shape = {2, 5, 3, 4};
  const Tensor a = random_plain(shape, 1), b = random_nhwc(shape, 2, 3), c = random_plain({1, 5, 1, 1}, 3),
               d = random_plain({1}, 4);
  const Tensor gate = random_plain({2, 5, 1, 1}, 5);
  std::vector<double> expected;
  for (size_t i = 0; i < a.values.size(); ++i)
    expected.push_back(
        std::max(0.0, (a.values[i] + b.values[i] + c.values[i / 12 % 5] + d.values[0]) * gate.values[i / 12]));
  for (const bool nhwc : {false, true})
    check_kernel("nary", {a, b, c, d, gate},
                 {nhwc ? TensorView::nhwc(DType::f32, shape, 7) : TensorView::plain(DType::f32, shape)},
                 {{"op", "add"}}, {expected}, 1e-6, "mixed", {{"mul", 4, {}}, {"relu", -1, {}}});
}

// Rounded as `count` nodes of two operands would, or once.
double rounded(DType dtype, double value) {
  return static_cast<double>(widen_float(dtype, narrow_float(dtype, static_cast<float>(value))));
}

TEST(Nary, HalvesRoundAsTheirMeaning) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const bool ordered : {false, true})
      for (const int count : {1, 2, 3, 6, 17, 40})
        for (const int64_t elems : {1, 5, 67, 3001}) {
          std::vector<double> coefficients;
          if (count % 2 == 0)
            for (int k = 0; k < count; ++k) coefficients.push_back(rounded(dtype, 0.3 * (k % 7 - 2)));
          std::vector<Tensor> inputs;
          for (int k = 0; k < count; ++k) {
            Tensor x = random_plain({elems}, static_cast<unsigned>(k + 1));
            x.view.dtype = dtype;
            for (double& v : x.values) v = rounded(dtype, v * std::pow(8.0, k % 5));
            inputs.push_back(std::move(x));
          }
          if (elems > 60) {
            const double special[] = {std::nan(""), INFINITY, -INFINITY, -0.0, 65504, 6e-8, 1e-5};
            for (size_t i = 0; i < 40; ++i)
              inputs[i % static_cast<size_t>(count)].values[i] = rounded(dtype, special[i % 7]);
          }
          std::vector<double> expected(static_cast<size_t>(elems));
          const auto kept = [&](float v) {
            return ordered ? static_cast<float>(rounded(dtype, static_cast<double>(v))) : v;
          };
          for (size_t i = 0; i < expected.size(); ++i) {
            float sum = 0;
            bool first = true;
            for (size_t k = 0; k < inputs.size(); ++k) {
              const float c = coefficients.empty() ? 1.0F : static_cast<float>(coefficients[k]);
              if (c == 0 && !ordered) continue;
              const float product = static_cast<float>(inputs[k].values[i]) * c, term = kept(product);
              sum = first ? term : kept(sum + term);
              first = false;
            }
            expected[i] = rounded(dtype, static_cast<double>(sum));
          }
          for (const int64_t fan_in : {0, 2, 16}) {
            const Params params = {
                {"coefficients", coefficients}, {"fan_in", fan_in}, {"deterministic", int64_t{ordered}}};
            check_kernel("nary", inputs, {inputs[0].view}, params, {expected}, 0, "halves");
            if (HasFatalFailure()) return;
          }
        }
}

TEST(Nary, BytesWrapAndBroadcast) {
  for (const int count : {2, 3, 6, 30}) {
    std::vector<Tensor> inputs;
    std::vector<double> expected(2 * 5 * 67);
    for (int k = 0; k < count; ++k) {
      const std::vector<int64_t> shape = k % 3 == 2 ? std::vector<int64_t>{5, 1} : std::vector<int64_t>{2, 5, 67};
      Tensor x{TensorView::plain(DType::i8, shape), {}};
      x.values = random_values(x.view.elems(), static_cast<unsigned>(k), -128, 127);
      for (double& v : x.values) v = std::trunc(v);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += x.values[shape.size() == 2 ? i / 67 % 5 : i];
      inputs.push_back(std::move(x));
    }
    for (double& v : expected) v = static_cast<double>(static_cast<int8_t>(static_cast<int64_t>(v)));
    check_kernel("nary", inputs, {inputs[0].view}, {}, {expected}, 0, "bytes");
  }
}

TEST(Nary, LeavesOtherNarrowOperationsToTheMeaning) {
  Tensor x = random_plain({3}, 1);
  for (const DType dtype : {DType::f16, DType::i32}) {
    x.view.dtype = dtype;
    const Params params = {{"op", dtype == DType::f16 ? "mul" : "add"}};
    const std::vector<TensorView> views = {x.view, x.view};
    EXPECT_THAT(serves_nary({views, std::span(&x.view, 1), params}),
                ::testing::Optional(::testing::HasSubstr("sums of f16, bf16 and i8")));
  }
}

TEST(Nary, RefusesTooManyInputsAndForeignFanIns) {
  const auto with = [](int count, int64_t fan_in) {
    const auto inputs = inputs_of(count, {3});
    run_kernel("nary", inputs, {inputs[0].view}, {{"fan_in", fan_in}});
  };
  EXPECT_ERROR(with(101, 0), Unsupported, "nary takes 1 to 100 inputs; got 101");
  EXPECT_ERROR(with(3, 17), Unsupported, "nary takes a fan_in of 0 or in [2, 16]; got 17");
}

TEST(Nary, TuningChoosesAFanInInRange) {
  const int fan_in = fastest_fan_in({.op = "add", .weighted = true, .inputs = 9, .elems = 10000}, 2000);
  EXPECT_GE(fan_in, 2);
  EXPECT_LE(fan_in, 9);
  const int product = fastest_fan_in({.op = "mul", .weighted = false, .inputs = 9, .elems = 100}, 2000);
  EXPECT_LE(product, 4);
  EXPECT_EQ(fastest_fan_in({.op = "add", .weighted = false, .inputs = 2, .elems = 0}), 2);
}

TEST(Nary, WhatWasLearntIsNotMeasuredAgain) {
  learn_fan_ins({{"add weighted 5 x 2^7 by 2", 3}});
  const TensorView view = TensorView::plain(DType::f32, std::vector<int64_t>{100});
  // The operand of coefficient 0 is not read, and the step's is no input of the layer.
  const std::vector<TensorView> views(7, view);
  const Params params = {{"coefficients", std::vector<double>{1, 0.5, 0, 1, -1, 1}}};
  const std::vector<Step> steps = {{"mul", 6, {}}};
  EXPECT_EQ(find_kernel("nary")->tune({views, std::span(&view, 1), params, steps}, 2).at("fan_in"), ops::Attr(Dim(3)));
  EXPECT_EQ(known_fan_ins().at("add weighted 5 x 2^7 by 2"), 3);
  EXPECT_ERROR(learn_fan_ins({{"add 5 x 2^7 by 1", 17}}), InvalidModel,
               "the fan-in of 'add 5 x 2^7 by 1' must lie in [2, ", "got 17");
}

}  // namespace
}  // namespace hetnn::kernels::testing
