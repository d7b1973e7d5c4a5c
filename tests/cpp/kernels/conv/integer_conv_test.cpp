// Convolutions of integers, bit for bit.
#include "../integer_cases.h"

namespace hetnn::kernels::testing {
namespace {

struct Case {
  int64_t n = 1, c = 1, h = 1, w = 1, o = 1;
  int64_t kh = 1, kw = 1;
  int64_t sh = 1, sw = 1;
  std::vector<int64_t> padding = {0, 0, 0, 0};
  int64_t dh = 1, dw = 1;
  int64_t groups = 1;
  bool bias = true;
  int x_zero = 3, weight_zero = 0;
  Rounding rounding = Rounding::half_even_fp32;
  bool of_largest = false;  // the elements, all weights with the sign that makes the sums so, too
};

std::string describe(const Case& c) {
  return text("n", c.n, " c", c.c, " ", c.h, "x", c.w, " o", c.o, " k", c.kh, "x", c.kw, " s", c.sh, "x", c.sw, " d",
              c.dh, "x", c.dw, " g", c.groups);
}

// Padding counts as the zero point of the input, which is nothing.
std::vector<double> expected_of(const Case& c, const Integers& integers, const std::vector<double>& x,
                                const std::vector<double>& w, const std::vector<double>& b, int64_t oh, int64_t ow,
                                bool reals) {
  std::vector<double> out;
  const int64_t channels = c.c / c.groups, filters = c.o / c.groups;
  for (int64_t n = 0; n < c.n; ++n)
    for (int64_t m = 0; m < c.o; ++m)
      for (int64_t oy = 0; oy < oh; ++oy)
        for (int64_t ox = 0; ox < ow; ++ox) {
          int64_t sum = c.bias ? static_cast<int64_t>(b[static_cast<size_t>(m)]) : 0;
          for (int64_t ch = 0; ch < channels; ++ch)
            for (int64_t ky = 0; ky < c.kh; ++ky)
              for (int64_t kx = 0; kx < c.kw; ++kx) {
                const int64_t y = oy * c.sh + ky * c.dh - c.padding[0], at = ox * c.sw + kx * c.dw - c.padding[1];
                if (y < 0 || y >= c.h || at < 0 || at >= c.w) continue;
                const int64_t from = ((n * c.c + m / filters * channels + ch) * c.h + y) * c.w + at;
                sum += (static_cast<int64_t>(x[static_cast<size_t>(from)]) - c.x_zero) *
                       (static_cast<int64_t>(w[static_cast<size_t>(((m * channels + ch) * c.kh + ky) * c.kw + kx)]) -
                        c.weight_zero);
              }
          out.push_back(reals ? integers.real(sum, m) : integers.result(sum, m));
        }
  return out;
}

// All layouts of input and output give the same.
void check_conv(const Case& c, const std::string& kernel = "conv2d_i8") {
  const int64_t oh = (c.h + c.padding[0] + c.padding[2] - (c.kh - 1) * c.dh - 1) / c.sh + 1;
  const int64_t ow = (c.w + c.padding[1] + c.padding[3] - (c.kw - 1) * c.dw - 1) / c.sw + 1;
  ASSERT_GE(oh, 1);
  ASSERT_GE(ow, 1);
  Integers integers =
      Integers::of(c.o, 0.02, 0.002 * static_cast<double>(c.c / c.groups * c.kh * c.kw + 10), c.x_zero, -7);
  integers.weight_zero = c.weight_zero;
  integers.rounding = c.rounding;
  std::vector<double> x = random_integers(c.n * c.c * c.h * c.w, 1),
                      w = random_integers(c.o * c.c / c.groups * c.kh * c.kw, 2);
  if (c.of_largest) {
    for (double& value : x) value = -128;
    for (size_t k = 0; k < w.size(); ++k) w[k] = k < w.size() / 2 ? -128 : 127;
  }
  const std::vector<double> b = random_integers(c.o, 3, -9000, 9000);
  const std::vector<double> expected = expected_of(c, integers, x, w, b, oh, ow, false),
                            reals = expected_of(c, integers, x, w, b, oh, ow, true);
  Params params{{"stride", std::vector<int64_t>{c.sh, c.sw}},
                {"padding", c.padding},
                {"dilation", std::vector<int64_t>{c.dh, c.dw}},
                {"groups", c.groups},
                {"bias", int64_t{c.bias}}};
  integers.set(params);
  const std::vector<int64_t> in = {c.n, c.c, c.h, c.w}, out = {c.n, c.o, oh, ow};
  const SumBehind sum(integers, expected, c.bias ? 3 : 2);
  for (const int layouts : {0, 1, 2}) {
    const auto view = [&](const std::vector<int64_t>& shape, int64_t extra) {
      return layouts == 2 ? TensorView::plain(DType::i8, shape)
                          : TensorView::nhwc(DType::i8, shape, shape[1] + layouts * extra);
    };
    std::vector<Tensor> inputs = {{view(in, 5), x}, plain({c.o, c.c / c.groups, c.kh, c.kw}, w, DType::i8)};
    if (c.bias) inputs.push_back(plain({c.o}, b, DType::i32));
    check_kernel(kernel, inputs, {view(out, 3)}, params, {expected}, 0,
                 kernel + " " + describe(c) + " layouts " + std::to_string(layouts));
    if (c.groups < c.c && c.rounding == Rounding::half_even_fp32) {
      const TensorView to =
          layouts == 2 ? TensorView::plain(DType::f32, out) : TensorView::nhwc(DType::f32, out, out[1] + layouts * 3);
      check_kernel(kernel, inputs, {to}, params, {reals}, kOfReals,
                   kernel + " to reals " + describe(c) + " layouts " + std::to_string(layouts));
    }
    inputs.push_back({view(out, 9), sum.other});
    check_kernel(kernel, inputs, {view(out, 3)}, params, {sum.expected}, 0,
                 kernel + " and a sum " + describe(c) + " layouts " + std::to_string(layouts), sum.steps);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(IntegerConv2d, ChannelCountsAndTails) {
  for (const int64_t c : {9, 12, 16, 30, 33, 64})
    for (const int64_t o : {1, 7, 16, 23, 33, 64}) {
      check_conv({.c = c, .h = 5, .w = 6, .o = o, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}});
      if (HasFatalFailure()) return;
    }
}

TEST(IntegerConv2d, PointwiseWithAndWithoutStride) {
  check_conv({.n = 2, .c = 24, .h = 7, .w = 5, .o = 40});
  check_conv({.n = 2, .c = 24, .h = 7, .w = 5, .o = 40, .sh = 2, .sw = 2, .bias = false});
  check_conv({.c = 3, .h = 7, .w = 5, .o = 9});
  check_conv({.c = 40, .h = 40, .w = 40, .o = 9});
}

TEST(IntegerConv2d, FewInputChannels) {
  for (int64_t c = 1; c <= 8; ++c) {
    check_conv(
        {.n = 2, .c = c, .h = 17, .w = 13, .o = 18, .kh = 7, .kw = 7, .sh = 2, .sw = 2, .padding = {3, 3, 3, 3}});
    check_conv({.c = c, .h = 9, .w = 11, .o = 10, .kh = 3, .kw = 3});
    if (HasFatalFailure()) return;
  }
}

// Of rows longer than vectors and not.
TEST(IntegerConv2d, FirstLayersReadPlainImages) {
  for (const int64_t channels : {2, 3})
    for (const int64_t width : {5, 64, 67, 130, 200}) {
      Integers integers = Integers::of(20, 0.02, 0.002 * static_cast<double>(channels * 9 + 10), 3, -7);
      Params params{{"stride", std::vector<int64_t>{2, 2}}, {"padding", std::vector<int64_t>{1, 1}}};
      integers.set(params);
      const std::vector<int64_t> in = {2, channels, 5, width}, out = {2, 20, 3, (width + 1) / 2};
      std::vector<Tensor> inputs = {{TensorView::nhwc(DType::i8, in), random_integers(2 * channels * 5 * width, 1)},
                                    plain({20, channels, 3, 3}, random_integers(20 * channels * 9, 2), DType::i8)};
      const TensorView y = TensorView::nhwc(DType::i8, out);
      const std::vector<double> expected = run_kernel("conv2d_i8", inputs, {y}, params)[0];
      inputs[0].view = TensorView::plain(DType::i8, in);
      check_kernel("conv2d_i8", inputs, {y}, params, {expected}, 0, text("a plain image of width ", width));
      if (HasFatalFailure()) return;
    }
}

TEST(IntegerConv2d, ZeroPointsAtTheEndsOfTheRange) {
  for (const int zero : {-128, 0, 127}) {
    check_conv({.c = 16, .h = 5, .w = 6, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .x_zero = zero});
    check_conv({.c = 3, .h = 5, .w = 6, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .x_zero = zero});
    check_conv(
        {.c = 20, .h = 5, .w = 6, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 20, .x_zero = zero});
  }
}

TEST(IntegerConv2d, WeightsWithAZeroPoint) {
  check_conv({.c = 18, .h = 5, .w = 6, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .weight_zero = 9});
  check_conv({.c = 3, .h = 5, .w = 6, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .weight_zero = -128});
  check_conv(
      {.c = 6, .h = 5, .w = 5, .o = 6, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 6, .weight_zero = 3});
}

TEST(IntegerConv2d, OtherRoundings) {
  for (const Rounding rounding : {Rounding::double_rounding, Rounding::single_rounding}) {
    check_conv({.c = 18, .h = 5, .w = 6, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .rounding = rounding});
    check_conv({.n = 2, .c = 70, .h = 5, .w = 6, .o = 70, .kh = 3, .kw = 3, .groups = 70, .rounding = rounding});
  }
}

TEST(IntegerConv2d, StrideDilationAsymmetricPadding) {
  check_conv({.c = 12, .h = 11, .w = 13, .o = 20, .kh = 3, .kw = 5, .sh = 2, .sw = 1, .padding = {1, 0, 2, 3}});
  check_conv({.c = 12, .h = 11, .w = 13, .o = 20, .kh = 3, .kw = 3, .padding = {2, 2, 2, 2}, .dh = 2, .dw = 2});
  check_conv({.c = 10, .h = 12, .w = 9, .o = 17, .kh = 2, .kw = 4, .sh = 3, .sw = 2, .padding = {0, 4, 1, 0}, .dh = 3});
  check_conv({.c = 4, .h = 12, .w = 9, .o = 17, .kh = 2, .kw = 3, .sh = 3, .sw = 4, .padding = {0, 2, 1, 0}, .dh = 3});
  check_conv({.c = 4, .h = 12, .w = 9, .o = 17, .kh = 2, .kw = 3, .padding = {0, 2, 1, 0}, .dw = 3});
}

TEST(IntegerConv2d, WindowLargerThanTheImage) {
  check_conv({.c = 9, .h = 2, .w = 3, .o = 5, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}});
  check_conv({.c = 2, .h = 2, .w = 3, .o = 5, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}});
  check_conv({.c = 9, .h = 2, .w = 3, .o = 9, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}, .groups = 9});
}

// Its sums wrap, and what they leave is what direct ones are.
TEST(IntegerConv2d, Winograd) {
  const auto check = [](const Case& c) { check_conv(c, "conv2d_i8_winograd"); };
  check({.c = 64, .h = 24, .w = 24, .o = 64, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}});
  check({.n = 2, .c = 35, .h = 18, .w = 21, .o = 40, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .bias = false});
  check({.c = 96, .h = 9, .w = 33, .o = 72, .kh = 3, .kw = 3, .padding = {0, 2, 1, 0}, .x_zero = -128});
  check({.c = 12, .h = 3, .w = 17, .o = 5, .kh = 3, .kw = 3, .padding = {2, 1, 0, 1}, .x_zero = 127});
  for (const Rounding rounding : {Rounding::double_rounding, Rounding::single_rounding})
    check({.c = 64, .h = 12, .w = 12, .o = 48, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .rounding = rounding});
  for (const int zero : {-128, 127})
    check({.c = 227,
           .h = 8,
           .w = 9,
           .o = 32,
           .kh = 3,
           .kw = 3,
           .padding = {1, 1, 1, 1},
           .x_zero = zero,
           .of_largest = true});
}

TEST(IntegerConv2d, Groups) {
  check_conv({.n = 2, .c = 12, .h = 6, .w = 7, .o = 30, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 3});
  check_conv(
      {.c = 64, .h = 5, .w = 5, .o = 64, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .padding = {1, 1, 1, 1}, .groups = 2});
  check_conv({.c = 6, .h = 5, .w = 5, .o = 12, .kh = 3, .kw = 3, .groups = 6});
}

TEST(IntegerConv2d, DepthwiseOverChannelCounts) {
  for (const int64_t c : {2, 7, 16, 17, 33, 64, 70, 144}) {
    check_conv({.c = c, .h = 9, .w = 14, .o = c, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = c});
    check_conv({.n = 2,
                .c = c,
                .h = 9,
                .w = 14,
                .o = c,
                .kh = 5,
                .kw = 5,
                .sh = 2,
                .sw = 2,
                .padding = {2, 2, 2, 2},
                .groups = c,
                .bias = false});
    check_conv({.n = 2,
                .c = c,
                .h = 8,
                .w = 11,
                .o = c,
                .kh = 3,
                .kw = 3,
                .sh = 1,
                .sw = 2,
                .padding = {2, 0, 1, 3},
                .dh = 2,
                .groups = c});
    if (HasFatalFailure()) return;
  }
  for (const int64_t w : {1, 2, 3})
    check_conv({.c = 20, .h = 2, .w = w, .o = 20, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 20});
  check_conv({.c = 20, .h = 12, .w = 14, .o = 20, .kh = 7, .kw = 7, .padding = {3, 3, 3, 3}, .groups = 20});
  check_conv(
      {.c = 20, .h = 12, .w = 14, .o = 20, .kh = 3, .kw = 3, .padding = {2, 2, 2, 2}, .dh = 2, .dw = 2, .groups = 20});
}

}  // namespace
}  // namespace hetnn::kernels::testing
