// Sums with coefficients behind kernels: each producer's own result, then the sum worked out beside it.
#include "hetnn/kernels/elementwise/sum_step.h"

#include <algorithm>

#include "../kernel_runner.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

// A kernel with the inputs and parameters of one call, and the tensors that a step behind it may read.
struct Producer {
  std::string kernel;
  std::vector<Tensor> inputs;
  Params params;
  TensorView y;
  double tolerance = 2e-6;
};

std::vector<Producer> producers() {
  const std::vector<int64_t> image = {2, 7, 5, 9}, tokens = {19, 37};
  const Tensor x = random_nhwc(image, 1, 3), t = random_plain({19, 21}, 2);
  const std::vector<int64_t> ones = {1, 1}, threes = {3, 3}, around = {1, 1, 1, 1};
  const auto conv = [&](int64_t groups) {
    return Params{{"stride", ones}, {"padding", around}, {"dilation", ones}, {"groups", groups}, {"bias", int64_t{1}}};
  };
  const Params window = {{"kernel", threes}, {"stride", ones}, {"padding", around}, {"dilation", ones}};
  const TensorView pixels = TensorView::nhwc(DType::f32, image, 16), rows = TensorView::plain(DType::f32, tokens);
  const Tensor w = random_plain({7, 7, 3, 3}, 3), b = random_plain({7}, 4);
  return {
      {"conv2d_direct", {x, w, b}, conv(1), pixels},
      {"conv2d_winograd", {x, w, b}, conv(1), pixels, 1e-5},
      {"conv2d_depthwise", {x, random_plain({7, 1, 3, 3}, 5), b}, conv(7), pixels},
      {"linear", {t, random_plain({37, 21}, 6), random_plain({37}, 7)}, {{"bias", int64_t{1}}}, rows},
      {"matmul", {t, random_plain({21, 37}, 8)}, {}, rows},
      {"max_pool2d", {x}, window, pixels},
      {"layer_norm", {random_plain(tokens, 9)}, {}, rows},
      {"unary", {random_plain(tokens, 10)}, {{"op", "tanh"}, {"values", std::vector<double>{}}}, rows},
      {"binary", {x, random_plain({2, 7, 1, 1}, 11)}, {{"op", "mul"}, {"values", std::vector<double>{}}}, pixels},
      {"nary", {random_plain({19, 37}, 12), random_plain({19, 37}, 13)}, {{"op", "mul"}}, rows},
  };
}

Tensor operand_of(const TensorView& y, unsigned seed) {
  const std::vector<int64_t> shape(y.shape().begin(), y.shape().end());
  return y.layout == Layout::nhwc ? random_nhwc(shape, seed, 2) : random_plain(shape, seed);
}

TEST(SumStep, FollowsEveryProducer) {
  const std::vector<std::vector<double>> all = {
      {1, 2, 3},       {1, 1, 1},
      {-1, 1},         {0.5, -1, 1, 0.25},
      {1, -1, -1, -1}, {1, 0, 2},
      {-2.5, 0.5},     {3},
      {1, 2},          {1, 1, -3, 1, 2, 0.5, 1, 1, -1, 4, 1, 1, 1, 1, 2, 3, -1, 0.5}};
  for (const Producer& p : producers()) {
    const std::vector<double> alone = run_kernel(p.kernel, p.inputs, {p.y}, p.params)[0];
    for (const std::vector<double>& coefficients : all) {
      std::vector<Tensor> inputs = p.inputs;
      std::vector<double> expected = alone, closed = alone;
      for (double& v : expected) v *= coefficients[0];
      for (size_t k = 1; k < coefficients.size(); ++k) {
        inputs.push_back(operand_of(p.y, static_cast<unsigned>(20 + k)));
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += coefficients[k] * inputs.back().values[i];
      }
      for (size_t i = 0; i < expected.size(); ++i) closed[i] = std::clamp(expected[i], -0.25, 0.5);
      const Step sum = {std::string(kSum), static_cast<int>(p.inputs.size()), coefficients};
      for (const int64_t fan_in : {0, 2, 3, 16}) {
        Params params = p.params;
        params.set("fan_in", fan_in);
        check_kernel(p.kernel, inputs, {p.y}, params, {expected}, p.tolerance, p.kernel + " and a sum", {sum});
        check_kernel(p.kernel, inputs, {p.y}, params, {closed}, p.tolerance * 8, p.kernel + ", a sum and bounds",
                     {sum, {"clamp", -1, {-0.25, 0.5}}});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(SumStep, OperandsOfChannelsAndOneElementJoin) {
  for (const Producer& p : producers()) {
    const std::vector<double> alone = run_kernel(p.kernel, p.inputs, {p.y}, p.params)[0];
    const bool images = p.y.layout == Layout::nhwc;
    const int64_t channels = p.y.dims[1], inner = images ? p.y.dims[2] * p.y.dims[3] : 1;
    const Tensor full = operand_of(p.y, 1), channel = random_plain({channels}, 2), one = random_plain({1}, 3);
    const Tensor gate = images ? random_plain({2, channels, 1, 1}, 4) : random_plain({19, 1}, 4);
    std::vector<double> expected;
    for (size_t i = 0; i < alone.size(); ++i) {
      const size_t line = i / static_cast<size_t>(inner);
      const size_t row = images ? line : line / static_cast<size_t>(channels);
      expected.push_back(-alone[i] + 0.5 * gate.values[row] + 2 * one.values[0] +
                         channel.values[line % static_cast<size_t>(channels)] - 3 * full.values[i]);
    }
    std::vector<Tensor> inputs = p.inputs;
    for (const Tensor& operand : {gate, one, channel, full}) inputs.push_back(operand);
    check_kernel(p.kernel, inputs, {p.y}, p.params, {expected}, p.tolerance, p.kernel + " and a mixed sum",
                 {{std::string(kSum), static_cast<int>(p.inputs.size()), {-1, 0.5, 2, 1, -3}}});
    if (HasFatalFailure()) return;
  }
}

TEST(SumStep, InOrderEqualsTheChainBitForBit) {
  const std::vector<std::vector<double>> all = {
      {1, 0.3, 1, -1, 1.7}, {1, 1, 0.3}, {0.7, 1, 1}, {-1, 1}, {1, -1, -1, -1}, {1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}};
  for (const Producer& p : producers()) {
    for (const std::vector<double>& coefficients : all) {
      std::vector<Tensor> inputs = p.inputs;
      for (size_t k = 1; k < coefficients.size(); ++k) inputs.push_back(operand_of(p.y, static_cast<unsigned>(k)));
      for (const std::string& isa : available_isas()) {
        restrict_isa(isa);
        std::vector<double> expected = run_kernel(p.kernel, p.inputs, {p.y}, p.params)[0];
        for (size_t i = 0; i < expected.size(); ++i) {
          float sum = static_cast<float>(expected[i]) * static_cast<float>(coefficients[0]);
          for (size_t k = 1; k < coefficients.size(); ++k) {
            const float product =
                static_cast<float>(inputs[p.inputs.size() + k - 1].values[i]) * static_cast<float>(coefficients[k]);
            sum = sum + product;
          }
          expected[i] = static_cast<double>(sum);
        }
        for (const int64_t fan_in : {0, 2, 5}) {
          Params params = p.params;
          params.set("fan_in", fan_in);
          const RunOptions options = {
              .threads = 2, .steps = {{std::string(kOrderedSum), static_cast<int>(p.inputs.size()), coefficients}}};
          expect_same(run_kernel(p.kernel, inputs, {p.y}, params, options)[0], expected,
                      p.kernel + " and a sum in order on " + isa);
        }
      }
      restrict_isa("");
      if (HasFatalFailure()) return;
    }
  }
}

// The producer's result rounded to the type, then every product and every sum.
TEST(SumStep, OfHalvesRoundsEachOperation) {
  const std::vector<std::vector<double>> all = {
      {1, 0.3, 1, -1, 1.7}, {-1, 1}, {0.7, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 2}};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto rounded = [&](float value) { return widen_float(dtype, narrow_float(dtype, value)); };
    for (const Producer& p : producers()) {
      for (const std::vector<double>& coefficients : all) {
        std::vector<Tensor> inputs = p.inputs;
        for (size_t k = 1; k < coefficients.size(); ++k) {
          Tensor operand = operand_of(p.y, static_cast<unsigned>(k));
          operand.view.dtype = dtype;
          for (double& value : operand.values) value = static_cast<double>(rounded(static_cast<float>(value)));
          inputs.push_back(std::move(operand));
        }
        for (const std::string& isa : available_isas()) {
          restrict_isa(isa);
          std::vector<double> expected = run_kernel(p.kernel, p.inputs, {p.y}, p.params)[0];
          for (size_t i = 0; i < expected.size(); ++i) {
            float sum = rounded(rounded(static_cast<float>(expected[i])) * static_cast<float>(coefficients[0]));
            for (size_t k = 1; k < coefficients.size(); ++k) {
              const auto value = static_cast<float>(inputs[p.inputs.size() + k - 1].values[i]);
              sum = rounded(sum + rounded(value * static_cast<float>(coefficients[k])));
            }
            expected[i] = static_cast<double>(sum);
          }
          const std::string to(dtype == DType::f16 ? kToF16 : kToBf16),
              of(dtype == DType::f16 ? kSumOfF16 : kSumOfBf16);
          const RunOptions options = {.threads = 2,
                                      .steps = {{to, -1, {}}, {of, static_cast<int>(p.inputs.size()), coefficients}}};
          TensorView y = p.y;
          if (find_kernel(p.kernel)->tiles) y.dtype = dtype;
          expect_same(run_kernel(p.kernel, inputs, {y}, p.params, options)[0], expected,
                      p.kernel + " and a sum of " + std::string(dtype_name(dtype)) + " on " + isa);
        }
        restrict_isa("");
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(SumStep, RefusesWhatIsNoSum) {
  const Tensor x = random_plain({3}, 1);
  const auto with = [&](const std::string& kernel, const Step& step, int64_t fan_in) {
    const Params params = {{"op", "relu"}, {"values", std::vector<double>{}}, {"fan_in", fan_in}};
    run_kernel(kernel, {x, x}, {x.view}, params, {.steps = {step}});
  };
  for (const std::string kernel : {"unary", "layer_norm"}) {
    EXPECT_ERROR(with(kernel, {std::string(kSum), 1, {1, 2}}, 17), Unsupported,
                 "a sum's fan_in must be 0 or lie in [2, 16]; got 17");
    EXPECT_ERROR(with(kernel, {std::string(kSum), 1, {}}, 0), Unsupported, "a sum is of 1 to 100 values");
    EXPECT_ERROR(with(kernel, {std::string(kSum), 1, {1, 2, 3}}, 0), Unsupported, "names an input beyond the call's 2");
  }
}

}  // namespace
}  // namespace hetnn::kernels::testing
