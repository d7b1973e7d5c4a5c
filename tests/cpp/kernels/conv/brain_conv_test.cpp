// Convolutions of bf16, by products of pairs and without.
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
  for (const int64_t channels : {9, 16, 23, 40})
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

}  // namespace
}  // namespace hetnn::kernels::testing
