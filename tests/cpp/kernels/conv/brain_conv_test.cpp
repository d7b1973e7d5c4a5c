// Convolutions of bf16, by products of pairs and without.
#include <gmock/gmock.h>

#include "../brain_sums.h"
#include "../kernel_runner.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels::testing {
namespace {

struct Case {
  int64_t n, c, h, w, o, k, stride, padding, dilation;
};

void check_layer(const Case& c, bool bias) {
  const auto out_of = [&](int64_t size) { return (size + 2 * c.padding - (c.k - 1) * c.dilation - 1) / c.stride + 1; };
  const std::vector<int64_t> x = {c.n, c.c, c.h, c.w}, y = {c.n, c.o, out_of(c.h), out_of(c.w)};
  std::vector<Tensor> inputs = {{TensorView::plain(DType::bf16, x), short_values(c.n * c.c * c.h * c.w, 1)},
                                plain({c.o, c.c, c.k, c.k}, short_values(c.o * c.c * c.k * c.k, 2), DType::bf16)};
  if (bias) inputs.push_back(plain({c.o}, short_values(c.o, 3), DType::bf16));
  const std::vector<double> expected = meaning("conv2d", inputs,
                                               {{"stride", dims_of({c.stride, c.stride})},
                                                {"padding", dims_of({c.padding, c.padding, c.padding, c.padding})},
                                                {"dilation", dims_of({c.dilation, c.dilation})},
                                                {"groups", Dim(1)}});
  // Rounded once: half a unit of 8 bits, and what sums of f32 may lie beside the middle of two.
  constexpr double kTolerance = 1.001 / 256;
  for (const int64_t gap : {0, 6}) {
    inputs[0].view = TensorView::nhwc(DType::bf16, x, gap == 0 ? 0 : c.c + gap);
    for (const TensorView& out : {TensorView::nhwc(DType::bf16, y, c.o + gap), TensorView::plain(DType::bf16, y)})
      check_kernel("conv2d_bf16", inputs, {out},
                   {{"stride", std::vector<int64_t>{c.stride, c.stride}},
                    {"padding", std::vector<int64_t>{c.padding, c.padding}},
                    {"dilation", std::vector<int64_t>{c.dilation, c.dilation}},
                    {"groups", int64_t{1}},
                    {"bias", int64_t{bias}}},
                   {expected}, kTolerance,
                   text("conv2d of ", c.c, " channels ", c.h, "x", c.w, " by ", c.o, " windows ", c.k, " stride ",
                        c.stride, " padding ", c.padding, " dilation ", c.dilation));
  }
}

TEST(BrainConv2d, EveryTailOfChannelsPixelsAndFilters) {
  for (const int64_t channels : {1, 3, 8, 9, 16, 23, 40})
    for (const int64_t filters : {1, 15, 16, 17, 40})
      for (const int64_t width : {1, 6, 29}) {
        check_layer({1, channels, 3, width, filters, 1, 1, 0, 1}, filters % 2 == 1);
        check_layer({1, channels, 4, width, filters, 3, 1, 1, 1}, filters % 2 == 0);
        if (HasFatalFailure()) return;
      }
}

TEST(BrainConv2d, StridesDilationsAndBatches) {
  for (const Case& c : {Case{2, 18, 9, 11, 20, 3, 2, 1, 1}, Case{1, 33, 8, 8, 33, 1, 2, 0, 1},
                        Case{1, 12, 11, 10, 48, 3, 1, 2, 2}, Case{3, 64, 7, 7, 70, 5, 1, 2, 1}})
    check_layer(c, true);
}

// A kernel row of such a window is one run of elements, of a number that is odd or not.
TEST(BrainConv2d, FirstLayersReadImagesOfEitherLayout) {
  for (const Case& c : {Case{2, 3, 23, 21, 40, 7, 2, 3, 1}, Case{1, 3, 9, 40, 17, 3, 2, 1, 1},
                        Case{1, 4, 8, 9, 16, 3, 1, 1, 1}, Case{1, 2, 11, 12, 33, 5, 3, 0, 1}})
    check_layer(c, c.n == 2);
  for (const int64_t width : {5, 32, 38, 97}) {
    const std::vector<int64_t> y = {1, 20, 6, (width + 1) / 2};
    Tensor image = plain({1, 3, 12, width}, short_values(3 * 12 * width, 5), DType::bf16);
    const Tensor weight = plain({20, 3, 3, 3}, short_values(20 * 27, 6), DType::bf16);
    const Params params = {{"stride", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{1, 1}}};
    const auto of_planes = run_kernel("conv2d_bf16", {image, weight}, {TensorView::nhwc(DType::bf16, y)}, params);
    image.view = TensorView::nhwc(DType::bf16, image.view.shape());
    expect_same(run_kernel("conv2d_bf16", {image, weight}, {TensorView::nhwc(DType::bf16, y)}, params)[0], of_planes[0],
                "an image channels last");
  }
}

// What stands behind the last element of a kernel row is no part of the sum.
TEST(BrainConv2d, FirstLayersTakeNoNeighbour) {
  Tensor image = plain({1, 3, 1, 8}, std::vector<double>(24, 1.0), DType::bf16);
  for (int64_t c = 0; c < 3; ++c) image.values[static_cast<size_t>(c * 8 + 3)] = INFINITY;
  const Tensor weight = plain({1, 3, 1, 3}, std::vector<double>(9, 1.0), DType::bf16);
  check_kernel("conv2d_bf16", {image, weight}, {TensorView::nhwc(DType::bf16, std::vector<int64_t>{1, 1, 1, 6})},
               {{"stride", std::vector<int64_t>{1, 1}}}, {{9, INFINITY, INFINITY, INFINITY, 9, 9}}, 0,
               "beside infinity");
}

TEST(BrainConv2d, AddsAValueAndBoundsTheSum) {
  for (const auto& [channels, filters, width] :
       {std::tuple<int64_t, int64_t, int64_t>{16, 16, 5}, {24, 33, 29}, {70, 100, 14}, {3, 40, 11}}) {
    const std::vector<int64_t> x = {2, channels, 3, width}, y = {2, filters, 3, width};
    const std::vector<Tensor> inputs = {
        {TensorView::nhwc(DType::bf16, x), short_values(2 * channels * 3 * width, 1)},
        plain({filters, channels, 3, 3}, short_values(filters * channels * 9, 2), DType::bf16),
        plain({filters}, short_values(filters, 3), DType::bf16)};
    const Params params = {{"padding", std::vector<int64_t>{1, 1}}, {"bias", int64_t{1}}};
    check_brain_sums("conv2d_bf16", inputs, TensorView::nhwc(DType::bf16, y, filters + 6),
                     TensorView::nhwc(DType::bf16, y, filters + 3), params);
    check_brain_sums("conv2d_bf16", inputs, TensorView::plain(DType::bf16, y), TensorView::plain(DType::bf16, y),
                     params);
    if (HasFatalFailure()) return;
  }
}

TEST(BrainConv2d, SaysWhichSumsItTakes) {
  const std::vector<int64_t> y = {1, 16, 4, 4};
  const TensorView image = TensorView::nhwc(DType::bf16, y),
                   weight = TensorView::of_weight(DType::bf16, std::vector<int64_t>{16, 16, 1, 1});
  const auto refusal = [&](const TensorView& operand, std::vector<Step> steps) {
    const std::vector<TensorView> inputs = {image, weight, operand}, outputs = {image};
    const Params params;
    return refusal_of(*find_kernel("conv2d_bf16"), {inputs, outputs, params, steps}).value_or("");
  };
  const auto sum = [](double c) { return Step{"ordered_sum_bf16", 2, {1, c}}; };
  const Step relu = {"relu", -1, {}};
  EXPECT_EQ(refusal(image, {sum(1), relu}), "");
  EXPECT_THAT(refusal(image, {relu, sum(1)}), ::testing::HasSubstr("one sum, before bounds"));
  EXPECT_THAT(refusal(image, {sum(1), sum(1)}), ::testing::HasSubstr("one sum, before bounds"));
  EXPECT_THAT(refusal(image, {sum(0.5)}), ::testing::HasSubstr("two values as they are"));
  EXPECT_THAT(refusal(TensorView::nhwc(DType::bf16, std::vector<int64_t>{1, 16, 1, 4}), {sum(1)}),
              ::testing::HasSubstr("lies as the result does"));
  EXPECT_THAT(refusal(TensorView::nhwc(DType::f32, y), {sum(1)}), ::testing::HasSubstr("takes bf16 as an operand"));
}

}  // namespace
}  // namespace hetnn::kernels::testing
