// Normalizations and softmax against plain loops.
#include "../kernel_runner.h"
#include "hetnn/kernels/norm/reference.h"

namespace hetnn::kernels::testing {
namespace {

TEST(LayerNorm, MatchesLoopsWithEveryCombinationOfOperands) {
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
            const auto expected = reference::row_norm(sum, n, weight ? w.values : std::vector<double>(),
                                                      bias ? b.values : std::vector<double>(), 1e-3, rms);
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

TEST(LayerNorm, OverSeveralAxesWithAnEpilogue) {
  const Tensor x = random_plain({3, 4, 6}, 1), w = random_plain({4, 6}, 2), full = random_plain({3, 4, 6}, 3);
  auto expected = reference::row_norm(x.values, 24, w.values, {}, 1e-5, false);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, expected[i] + full.values[i]);
  check_kernel("layer_norm", {x, w, full}, {x.view},
               {{"axes", int64_t{2}}, {"weight", int64_t{1}}}, {expected}, 1e-5, "two axes",
               steps_of("add %2; relu"));
}

TEST(LayerNorm, KeepsDigitsFarFromZero) {
  Tensor x = random_plain({2, 1000}, 1);
  for (double& v : x.values) v = static_cast<double>(static_cast<float>(v + 100));
  check_kernel("layer_norm", {x}, {x.view}, {}, {reference::row_norm(x.values, 1000, {}, {}, 1e-5, false)}, 1e-4,
               "mean 100");
}

TEST(GroupNorm, MatchesLoopsInBothLayouts) {
  for (const int64_t channels : {6, 24, 64, 160})
    for (const int64_t groups : {int64_t{1}, int64_t{2}, int64_t{3}, channels}) {
      if (channels % groups != 0) continue;
      const std::vector<int64_t> shape = {2, channels, 5, 7};
      const Tensor w = random_plain({channels}, 2), b = random_plain({channels}, 3);
      for (const bool nhwc : {false, true}) {
        const Tensor x = nhwc ? random_nhwc(shape, 1, 3) : random_plain(shape, 1);
        const auto expected = reference::group_norm(x.values, 2, channels, 35, groups, w.values, b.values, 1e-5);
        const TensorView y = nhwc ? TensorView::nhwc(DType::f32, shape) : x.view;
        const Params params = {{"groups", groups}, {"weight", int64_t{1}}, {"bias", int64_t{1}}};
        check_kernel(groups == channels ? "instance_norm" : "group_norm", {x, w, b}, {y}, params, {expected}, 1e-5,
                     "group_norm");
        if (HasFatalFailure()) return;
      }
    }
}

TEST(ScaleShift, MultipliesAndAddsPerChannel) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 21}, {2, 21, 4, 5}, {2, 21, 1, 1}})
    for (const bool nhwc : {false, true}) {
      if (nhwc && shape.size() < 3) continue;
      const Tensor x = nhwc ? random_nhwc(shape, 1, 2) : random_plain(shape, 1);
      const Tensor scale = random_plain({21}, 2), shift = random_plain({21}, 3);
      const size_t pixels = shape.size() == 2 ? 1 : static_cast<size_t>(shape[2] * shape[3]);
      std::vector<double> expected;
      for (size_t i = 0; i < x.values.size(); ++i)
        expected.push_back(std::max(0.0, x.values[i] * scale.values[i / pixels % 21] + shift.values[i / pixels % 21]));
      check_kernel("scale_shift", {x, scale, shift}, {x.view}, {}, {expected}, 1e-6, "scale_shift",
                   steps_of("relu"));
    }
}

TEST(Softmax, MatchesLoopsOverEveryAxisAndLayout) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {3, 2}, {3, 100}, {4, 2, 9, 5}, {2, 30, 3, 3}})
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
      for (const bool log : {false, true})
        for (const bool nhwc : {false, true}) {
          if (nhwc && shape.size() < 3) continue;
          Tensor x = nhwc ? random_nhwc(shape, 1, 1) : random_plain(shape, 1);
          for (double& v : x.values) v *= 8;
          int64_t outer = 1, inner = 1;
          for (int64_t a = 0; a < static_cast<int64_t>(shape.size()); ++a) {
            if (a < axis) outer *= shape[static_cast<size_t>(a)];
            if (a > axis) inner *= shape[static_cast<size_t>(a)];
          }
          const auto expected = reference::softmax(x.values, outer, shape[static_cast<size_t>(axis)], inner, log);
          check_kernel(log ? "log_softmax" : "softmax", {x}, {x.view}, {{"axis", axis}}, {expected}, 1e-6, "softmax");
          if (HasFatalFailure()) return;
        }
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
