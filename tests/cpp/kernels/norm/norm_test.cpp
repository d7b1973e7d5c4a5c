// Normalizations and softmax against their meanings.
#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

// Every row of the last axis, in f64; without a mean to subtract (rms) by the meanings of what it is made of.
std::vector<double> row_norm(const Tensor& x, const std::vector<Tensor>& weight_and_bias, double eps, bool rms) {
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), weight_and_bias.begin(), weight_and_bias.end());
  if (!rms) return meaning("layer_norm", inputs, {{"eps", eps}});
  const auto square = plain({x.view.shape().begin(), x.view.shape().end()}, meaning("mul", {x, x}));
  auto scales = meaning("mean", {square}, {{"axes", dims({-1})}});
  auto y = x.values;
  const size_t n = y.size() / scales.size();
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] /= std::sqrt(scales[i / n] + eps);
    if (!weight_and_bias.empty()) y[i] *= weight_and_bias[0].values[i % n];
  }
  return y;
}

TEST(LayerNorm, MatchesItsMeaningWithEveryCombinationOfOperands) {
  for (const int64_t n : {1, 3, 16, 37, 384, 2050})
    for (const bool rms : {false, true})
      for (const bool weight : {false, true})
        for (const bool bias : {false, true})
          for (const bool residual : {false, true}) {
            if (rms && bias) continue;
            const Tensor x = random_plain({2, 5, n}, 1), r = random_plain({2, 5, n}, 2), w = random_plain({n}, 3),
                         b = random_plain({n}, 4);
            std::vector<Tensor> inputs = {x};
            std::vector<double> sum = x.values;
            if (residual) {
              inputs.push_back(r);
              for (size_t i = 0; i < sum.size(); ++i) sum[i] += r.values[i];
            }
            if (weight) inputs.push_back(w);
            if (bias) inputs.push_back(b);
            // Absent operands are ones and zeros here.
            const Tensor ones = plain({n}, std::vector<double>(static_cast<size_t>(n), 1));
            std::vector<Tensor> scaling;
            if (weight || bias) scaling.push_back(weight ? w : ones);
            if (bias) scaling.push_back(b);
            const auto expected = row_norm(plain({2, 5, n}, sum), scaling, 1e-3, rms);
            std::vector<TensorView> outputs = {x.view};
            std::vector<std::vector<double>> results = {expected};
            if (residual) {
              outputs.push_back(x.view);
              results.push_back(sum);
            }
            check_kernel(
                rms ? "rms_norm" : "layer_norm", inputs, outputs,
                {{"eps", 1e-3}, {"weight", int64_t{weight}}, {"bias", int64_t{bias}}, {"residual", int64_t{residual}}},
                results, 1e-5, "layer_norm of " + std::to_string(n));
            if (HasFatalFailure()) return;
          }
}

TEST(LayerNorm, OverSeveralAxesWithSteps) {
  const Tensor x = random_plain({3, 4, 6}, 1), w = random_plain({4, 6}, 2), full = random_plain({3, 4, 6}, 3);
  auto expected = meaning("layer_norm", {x, w}, {{"axes", Dim(2)}});
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, expected[i] + full.values[i]);
  check_kernel("layer_norm", {x, w, full}, {x.view}, {{"axes", int64_t{2}}, {"weight", int64_t{1}}}, {expected}, 1e-5,
               "two axes", {{"add", 2, {}}, {"relu", -1, {}}});
}

TEST(LayerNorm, KeepsDigitsFarFromZero) {
  Tensor x = random_plain({2, 1000}, 1);
  for (double& v : x.values) v = static_cast<double>(static_cast<float>(v + 100));
  check_kernel("layer_norm", {x}, {x.view}, {}, {meaning("layer_norm", {x})}, 1e-4, "mean 100");
}

TEST(GroupNorm, MatchesItsMeaningInBothLayouts) {
  for (const int64_t channels : {6, 24, 64, 160})
    for (const int64_t groups : {int64_t{1}, int64_t{2}, int64_t{3}, channels}) {
      if (channels % groups != 0) continue;
      const std::vector<int64_t> shape = {2, channels, 5, 7};
      const Tensor w = random_plain({channels}, 2), b = random_plain({channels}, 3);
      for (const bool nhwc : {false, true}) {
        const Tensor x = nhwc ? random_nhwc(shape, 1, 3) : random_plain(shape, 1);
        auto expected = meaning("layer_norm", {plain({2 * groups, channels / groups * 35}, x.values)});
        for (size_t i = 0; i < expected.size(); ++i) {
          const size_t channel = i / 35 % static_cast<size_t>(channels);
          expected[i] = expected[i] * w.values[channel] + b.values[channel];
        }
        const TensorView y = nhwc ? TensorView::nhwc(DType::f32, shape) : x.view;
        const Params params = {{"groups", groups}, {"weight", int64_t{1}}, {"bias", int64_t{1}}};
        check_kernel("group_norm", {x, w, b}, {y}, params, {expected}, 1e-5, "group_norm");
        const Tensor full = nhwc ? random_nhwc(shape, 4, 1) : random_plain(shape, 4);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * full.values[i] - expected[i];
        check_kernel("group_norm", {x, w, b, full}, {y}, params, {expected}, 1e-5, "group_norm with a sum behind",
                     {{"sum", 3, {-1, 2}}});
        if (HasFatalFailure()) return;
      }
    }
}

TEST(GroupNorm, StepsFollowWithoutPixels) {
  const Tensor x = random_plain({3, 12}, 1), full = random_plain({3, 12}, 2);
  auto expected = meaning("layer_norm", {plain({12, 3}, x.values)});
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += 2 * full.values[i];
  check_kernel("group_norm", {x, full}, {x.view}, {{"groups", int64_t{4}}}, {expected}, 1e-5, "no pixels",
               {{"sum", 1, {1, 2}}});
}

// Channels by rows and by planes, whole vectors and parts of them, several chunks, values far from 0.
const std::vector<std::vector<int64_t>> kBatches = {{7, 3},        {300, 20},       {3, 2, 5},
                                                    {2, 70, 9, 8}, {5, 16, 30, 33}, {4, 6, 1, 1}};

TEST(BatchNormTraining, MatchesItsMeaning) {
  for (const std::vector<int64_t>& shape : kBatches)
    for (const bool nhwc : {false, true})
      for (const bool affine : {false, true}) {
        if (nhwc && shape.size() < 3) continue;
        Tensor x = nhwc ? random_nhwc(shape, 1, 3) : random_plain(shape, 1);
        for (double& v : x.values) v = static_cast<float>(v + 4);
        const Tensor w = random_plain({shape[1]}, 2), b = random_plain({shape[1]}, 3);
        const std::vector<Tensor> inputs = affine ? std::vector<Tensor>{x, w, b} : std::vector<Tensor>{x};
        auto expected = all_meanings("batch_norm_training", inputs);
        const TensorView channels = TensorView::plain(DType::f32, {{shape[1]}});
        const TensorView y = nhwc ? TensorView::nhwc(DType::f32, shape) : x.view;
        const Params params = {{"weight", int64_t{affine}}, {"bias", int64_t{affine}}};
        check_kernel("batch_norm_training", inputs, {y, channels, channels}, params, expected, 1e-5, "batch norm");
        std::vector<Tensor> more = inputs;
        more.push_back(nhwc ? random_nhwc(shape, 4, 1) : random_plain(shape, 4));
        for (size_t i = 0; i < expected[0].size(); ++i) expected[0][i] = 2 * more.back().values[i] - expected[0][i];
        check_kernel("batch_norm_training", more, {y, channels, channels}, params, expected, 1e-5, "a sum behind",
                     {{"sum", static_cast<int>(inputs.size()), {-1, 2}}});
        if (HasFatalFailure()) return;
      }
}

TEST(BatchNormTraining, ValuesFarFromZeroLoseLittle) {
  Tensor x = random_nhwc({2, 5, 20, 20}, 1, 3);
  for (double& v : x.values) v = static_cast<float>(v + 3000);
  const TensorView channels = TensorView::plain(DType::f32, {{5}});
  const auto expected = all_meanings("batch_norm_training", {x});
  const auto found = run_kernel("batch_norm_training", {x}, {x.view, channels, channels}, {}, {});
  expect_close(found[1], expected[1], 1e-6, "mean");
  expect_close(found[2], expected[2], 1e-5, "variance");
}

TEST(BatchNormGradient, MatchesItsMeaning) {
  for (const std::vector<int64_t>& shape : kBatches)
    for (const int layouts : {0, 1, 2})  // both plain, both by pixels, one of each
      for (const bool weighed : {false, true}) {
        if (layouts > 0 && shape.size() < 3) continue;
        const Tensor g = layouts > 0 ? random_nhwc(shape, 1, 2) : random_plain(shape, 1);
        const Tensor x = layouts == 1 ? random_nhwc(shape, 2, 1) : random_plain(shape, 2);
        const Tensor w = random_plain({shape[1]}, 3), mean = random_plain({shape[1]}, 4),
                     s = random_plain({shape[1]}, 5);
        const std::vector<Tensor> inputs =
            weighed ? std::vector<Tensor>{g, x, w, mean, s} : std::vector<Tensor>{g, x, mean, s};
        const Tensor one = plain({shape[1]}, std::vector<double>(static_cast<size_t>(shape[1]), 1));
        const auto expected = all_meanings("batch_norm_gradient", {g, x, weighed ? w : one, mean, s});
        const TensorView channels = TensorView::plain(DType::f32, {{shape[1]}});
        const TensorView y = layouts > 0 ? TensorView::nhwc(DType::f32, shape) : g.view;
        check_kernel("batch_norm_gradient", inputs, {y, channels, channels}, {{"weight", int64_t{weighed}}}, expected,
                     1e-5, "gradient of batch norm");
        if (HasFatalFailure()) return;
      }
}

TEST(Softmax, MatchesItsMeaningOverEveryAxisAndLayout) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1}, {3, 2}, {3, 100}, {4, 2, 9, 5}, {2, 30, 3, 3}, {2, 3, 5, 37}})
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
      for (const bool log : {false, true})
        for (const bool nhwc : {false, true}) {
          if (nhwc && shape.size() < 3) continue;
          Tensor x = nhwc ? random_nhwc(shape, 1, 1) : random_plain(shape, 1);
          for (double& v : x.values) v *= 8;
          const auto expected = meaning(log ? "log_softmax" : "softmax", {x}, {{"axis", Dim(axis)}});
          check_kernel(log ? "log_softmax" : "softmax", {x}, {x.view}, {{"axis", axis}}, {expected}, 1e-6, "softmax");
          if (HasFatalFailure()) return;
        }
}

// Behind the lines come a product with one value a channel, a difference from a full operand, and a sum with
// coefficients of a full operand that is plain and of one number.
TEST(Softmax, StepsFollowOverEveryAxisAndLayout) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 100}, {4, 2, 9, 5}, {2, 30, 3, 3}, {2, 1, 1, 40}, {2, 3, 2, 37}})
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
      for (const bool log : {false, true})
        for (const bool nhwc : {false, true}) {
          if (nhwc && shape.size() < 3) continue;
          const Tensor x = nhwc ? random_nhwc(shape, 1, 1) : random_plain(shape, 1);
          std::vector<int64_t> channels(shape.size(), 1);
          channels[1] = shape[1];
          const Tensor a = random_plain(channels, 2), b = nhwc ? random_nhwc(shape, 3, 2) : random_plain(shape, 3),
                       c = random_plain(shape, 4), d = random_plain({1}, 5);
          auto expected = meaning(log ? "log_softmax" : "softmax", {x}, {{"axis", Dim(axis)}});
          const size_t pixels = expected.size() / static_cast<size_t>(shape[0] * shape[1]);
          for (size_t i = 0; i < expected.size(); ++i) {
            const double made = expected[i] * a.values[i / pixels % static_cast<size_t>(shape[1])] - b.values[i];
            expected[i] = -made + 2 * c.values[i] + 3 * d.values[0];
          }
          check_kernel(log ? "log_softmax" : "softmax", {x, a, b, c, d}, {x.view}, {{"axis", axis}}, {expected}, 2e-6,
                       "softmax with steps", {{"mul", 1, {}}, {"sub", 2, {}}, {"sum", 3, {-1, 2, 3}}});
          if (HasFatalFailure()) return;
        }
}

TEST(Softmax, ReadsOneLayoutAndWritesTheOther) {
  const std::vector<int64_t> shape = {2, 2, 7, 19};
  const Tensor x = random_nhwc(shape, 1, 14), plain = random_plain(shape, 1);
  const auto expected = meaning("softmax", {x}, {{"axis", Dim(1)}});
  const Params params = {{"axis", int64_t{1}}};
  check_kernel("softmax", {x}, {TensorView::plain(DType::f32, shape)}, params, {expected}, 1e-6, "to planes");
  check_kernel("softmax", {plain}, {x.view}, params, {expected}, 1e-6, "from planes");
}

TEST(Softmax, SurvivesLargeLogitsAndPassesNan) {
  Tensor x = plain({2, 30}, std::vector<double>(60, 1000.0));
  x.values[45] = std::nan("");
  std::vector<double> expected(60, 1.0 / 30);
  for (size_t i = 30; i < 60; ++i) expected[i] = std::nan("");
  check_kernel("softmax", {x}, {x.view}, {{"axis", int64_t{-1}}}, {expected}, 1e-6, "softmax");
}

}  // namespace
}  // namespace hetnn::kernels::testing
