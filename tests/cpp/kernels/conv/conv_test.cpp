// Convolutions of every variant against their meanings.
#include "hetnn/kernels/conv/conv.h"

#include <limits>

#include "conv_cases.h"
#include "expect_error.h"
#include "hetnn/kernels/query/best.h"

namespace hetnn::kernels::testing {
namespace {

TEST(Conv2d, DirectOverChannelCountsAndTails) {
  for (int64_t c = 9; c <= 70; c += 6)
    for (const int64_t o : {1, 7, 16, 23, 33, 64}) {
      check_conv({.c = c, .h = 5, .w = 6, .o = o, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}});
      if (HasFatalFailure()) return;
    }
}

TEST(Conv2d, PointwiseWithAndWithoutStride) {
  check_conv({.n = 2, .c = 24, .h = 7, .w = 5, .o = 40});
  check_conv({.n = 2, .c = 24, .h = 7, .w = 5, .o = 40, .sh = 2, .sw = 2});
  check_conv({.c = 3, .h = 7, .w = 5, .o = 9});
}

TEST(Conv2d, FewInputChannels) {
  for (int64_t c = 1; c <= 8; ++c) {
    check_conv(
        {.n = 2, .c = c, .h = 17, .w = 13, .o = 18, .kh = 7, .kw = 7, .sh = 2, .sw = 2, .padding = {3, 3, 3, 3}});
    check_conv({.c = c, .h = 9, .w = 11, .o = 10, .kh = 3, .kw = 3});
    if (HasFatalFailure()) return;
  }
}

TEST(Conv2d, StrideDilationAsymmetricPadding) {
  check_conv({.c = 12, .h = 11, .w = 13, .o = 20, .kh = 3, .kw = 5, .sh = 2, .sw = 1, .padding = {1, 0, 2, 3}});
  check_conv({.c = 12, .h = 11, .w = 13, .o = 20, .kh = 3, .kw = 3, .padding = {2, 2, 2, 2}, .dh = 2, .dw = 2});
  check_conv({.c = 10, .h = 12, .w = 9, .o = 17, .kh = 2, .kw = 4, .sh = 3, .sw = 2, .padding = {0, 4, 1, 0}, .dh = 3});
  check_conv({.c = 4, .h = 12, .w = 9, .o = 17, .kh = 2, .kw = 3, .sh = 3, .sw = 4, .padding = {0, 2, 1, 0}, .dh = 3});
  check_conv({.c = 4, .h = 12, .w = 9, .o = 17, .kh = 2, .kw = 3, .padding = {0, 2, 1, 0}, .dw = 3});
}

TEST(Conv2d, WindowLargerThanTheImage) {
  check_conv({.c = 9, .h = 2, .w = 3, .o = 5, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}});
  check_conv({.c = 2, .h = 2, .w = 3, .o = 5, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}});
  check_conv({.c = 9, .h = 2, .w = 3, .o = 9, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}, .groups = 9});
}

TEST(Conv2d, Groups) {
  check_conv({.n = 2, .c = 12, .h = 6, .w = 7, .o = 30, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 3});
  check_conv(
      {.c = 64, .h = 5, .w = 5, .o = 64, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .padding = {1, 1, 1, 1}, .groups = 2});
  check_conv({.c = 6, .h = 5, .w = 5, .o = 12, .kh = 3, .kw = 3, .groups = 6});
}

TEST(Conv2d, DepthwiseOverChannelCounts) {
  for (int64_t c = 2; c <= 70; c += 5) {
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
                .groups = c});
    if (HasFatalFailure()) return;
  }
  check_conv({.c = 20, .h = 9, .w = 14, .o = 20, .kh = 5, .kw = 5, .padding = {2, 2, 2, 2}, .groups = 20});
  check_conv(
      {.c = 20, .h = 9, .w = 14, .o = 20, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .padding = {0, 1, 1, 0}, .groups = 20});
  check_conv({.c = 20, .h = 12, .w = 14, .o = 20, .kh = 7, .kw = 7, .padding = {3, 3, 3, 3}, .groups = 20});
  check_conv(
      {.c = 20, .h = 12, .w = 14, .o = 20, .kh = 3, .kw = 3, .padding = {2, 2, 2, 2}, .dh = 2, .dw = 2, .groups = 20});
}

TEST(Conv2d, OneRowIsSharedByChannelsAlsoByMoreThreadsThanTheyHavePanels) {
  for (const int64_t c : {16, 24, 32, 130})
    check_conv({.c = c, .h = 1, .w = 300, .o = c, .kh = 1, .kw = 5, .padding = {0, 2, 0, 2}, .groups = c});
}

// Tiles of every size, whose windows leave the image at one side, at both, or lie beside it.
TEST(Conv2d, DepthwiseOverWidths) {
  for (const int64_t width : {1, 2, 3, 4, 5, 7, 8, 11, 14, 15})
    for (const int64_t kernel : {3, 5, 7})
      for (const int64_t stride : {1, 2}) {
        const int64_t edge = kernel / 2;
        Case c{.c = 19, .h = 5, .w = width, .o = 19, .kh = 3, .kw = kernel, .sh = stride, .sw = stride};
        c.groups = c.c;
        c.padding = {1, edge, 1, edge};
        check_conv(c);
        c.padding = {0, 2 * kernel, 1, kernel + width};
        check_conv(c);
        c.padding = {1, 2 * edge, 2, 2 * edge + 3};
        c.dw = 2;
        check_conv(c);
        if (HasFatalFailure()) return;
      }
}

// Rows of several tiles and their ends, over every number of outputs of a panel and every stride.
TEST(Conv2d, PlanesOfAnImage) {
  for (int64_t o = 1; o <= 17; ++o) {
    check_conv({.c = 1 + o % 4, .h = 4, .w = 47 + 3 * o, .o = o, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}});
    if (HasFatalFailure()) return;
  }
  for (const int64_t stride : {1, 2, 3, 4}) {
    check_conv({.n = 2,
                .c = 3,
                .h = 21,
                .w = 70,
                .o = 24,
                .kh = 3,
                .kw = 3,
                .sh = stride,
                .sw = stride,
                .padding = {1, 2, 0, 1}});
    check_conv({.n = 2,
                .c = 2,
                .h = 17,
                .w = 40,
                .o = 9,
                .kh = 2,
                .kw = 5,
                .sh = stride,
                .sw = stride,
                .padding = {0, 5, 3, 4},
                .dh = 2,
                .dw = 3});
    check_conv({.n = 2, .c = 4, .h = 13, .w = 120, .o = 40, .sh = stride, .sw = stride});
    if (HasFatalFailure()) return;
  }
  check_conv({.c = 4, .h = 9, .w = 33, .o = 5, .kh = 8, .kw = 8, .sh = 1, .sw = 1, .padding = {4, 4, 4, 4}});
  check_conv({.c = 4, .h = 9, .w = 33, .o = 5, .kh = 8, .kw = 9, .sh = 1, .sw = 1, .padding = {4, 4, 4, 4}});
}

// Each function of one value and each of one a channel, bounds behind it, and what is no part of a tile.
TEST(Conv2d, PlanesTakeSteps) {
  const Case c{.n = 2, .c = 3, .h = 6, .w = 53, .o = 21, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}};
  const std::vector<int64_t> out = {c.n, c.o, c.h, c.w};
  const Tensor x = random_plain({c.n, c.c, c.h, c.w}, 1), w = random_plain({c.o, c.c, 3, 3}, 2);
  const Tensor b = random_plain({c.o}, 3), slopes = random_plain({c.o}, 5), one = random_plain({1}, 6);
  const Tensor other = random_nhwc(out, 4, 2);
  const TensorView y = TensorView::nhwc(DType::f32, out, c.o + 3);
  const auto conv = meaning("conv2d", {x, w, b}, attrs_of(c));
  const auto check = [&](const std::vector<Step>& steps, const auto& f) {
    std::vector<double> expected(conv.size());
    for (size_t i = 0; i < conv.size(); ++i)
      expected[i] = f(conv[i], i / static_cast<size_t>(c.h * c.w) % static_cast<size_t>(c.o), i);
    check_kernel("conv2d_planes", {x, w, b, slopes, one, other}, {y}, params_of(c, true), {expected}, 2e-6,
                 steps.front().function, steps);
  };
  const auto with_slope = [](double v, double slope) { return v > 0 ? v : slope * v; };
  check({{"prelu", 3, {}}}, [&](double v, size_t o, size_t) { return with_slope(v, slopes.values[o]); });
  check({{"prelu", 4, {}}}, [&](double v, size_t, size_t) { return with_slope(v, one.values[0]); });
  check({{"leaky_relu", -1, {0.25}}}, [&](double v, size_t, size_t) { return with_slope(v, 0.25); });
  check({{"silu", -1, {}}, {"clamp", -1, {-0.2, 0.7}}},
        [](double v, size_t, size_t) { return std::clamp(v / (1 + std::exp(-v)), -0.2, 0.7); });
  check({{"mul", 3, {}}, {"relu", -1, {}}},
        [&](double v, size_t o, size_t) { return std::max(0.0, v * slopes.values[o]); });
  check({{"mul", 5, {}}, {"relu", -1, {}}},
        [&](double v, size_t, size_t i) { return std::max(0.0, v * other.values[i]); });
  check({{"relu", -1, {}}, {"add", 5, {}}},
        [&](double v, size_t, size_t i) { return std::max(0.0, v) + other.values[i]; });
}

// Of groups of four and eight channels, of which a vector has several.
TEST(Conv2d, NarrowGroups) {
  for (const int64_t inputs : {4, 8})
    for (const int64_t outputs : {4, 8}) {
      if (inputs > outputs) continue;
      for (const int64_t groups : {2, 3, 5, 8, 13}) {
        check_conv({.n = 2,
                    .c = groups * inputs,
                    .h = 9,
                    .w = 14,
                    .o = groups * outputs,
                    .kh = 3,
                    .kw = 3,
                    .padding = {1, 1, 1, 1},
                    .groups = groups,
                    .kernel = "conv2d_grouped"});
        check_conv({.c = groups * inputs,
                    .h = 11,
                    .w = 22,
                    .o = groups * outputs,
                    .kh = 3,
                    .kw = 5,
                    .sh = 2,
                    .sw = 2,
                    .padding = {0, 3, 1, 1},
                    .dh = 2,
                    .groups = groups,
                    .kernel = "conv2d_grouped"});
        if (HasFatalFailure()) return;
      }
    }
}

// Rows of tiles that share columns: of each size, at both borders, of steps and dilations, vectors partly filled.
TEST(Conv2d, RowsOfNarrowGroups) {
  for (const int64_t inputs : {4, 8})
    for (const int64_t groups : {5, 9})
      for (const int64_t step : {1, 2, 3})
        for (const int64_t width : {8, 9, 15, 17, 34})
          for (const int64_t padding : {0, 1, 2})
            for (const int64_t dilation : {1, 2}) {
              check_conv({.c = groups * inputs,
                          .h = 5,
                          .w = width,
                          .o = groups * 8,
                          .kh = 3,
                          .kw = 3,
                          .sw = step * dilation,
                          .padding = {1, padding, 0, padding + width % 2},
                          .dw = dilation,
                          .groups = groups,
                          .kernel = "conv2d_grouped"});
              if (HasFatalFailure()) return;
            }
}

// One group's infinity is none of the next one's.
TEST(Conv2d, NarrowGroupsKeepTheirValues) {
  const Case c{.c = 16, .h = 5, .w = 12, .o = 16, .kh = 3, .kw = 3, .groups = 4, .kernel = "conv2d_grouped"};
  Tensor x = random_nhwc({c.n, c.c, c.h, c.w}, 1, 0);
  x.values[5] = std::numeric_limits<double>::infinity();
  const Tensor w = random_plain({c.o, 4, 3, 3}, 2), b = random_plain({c.o}, 3);
  const TensorView y = TensorView::nhwc(DType::f32, std::vector<int64_t>{1, 16, 3, 10});
  check_kernel("conv2d_grouped", {x, w, b}, {y}, params_of(c, true), {meaning("conv2d", {x, w, b}, attrs_of(c))}, 2e-6,
               "an infinity");
}

TEST(Conv2d, StepsBehindEveryVariant) {
  const std::vector<Case> cases = {
      {.n = 2, .c = 12, .h = 6, .w = 7, .o = 21, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}},
      {.n = 2, .c = 3, .h = 6, .w = 7, .o = 21, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}},
      {.n = 2, .c = 21, .h = 6, .w = 7, .o = 21, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 21},
      {.n = 2, .c = 20, .h = 6, .w = 7, .o = 20, .kh = 3, .kw = 3, .groups = 5}};
  for (const Case& c : cases) {
    const Size g = output_of(c);
    const Tensor w = random_plain({c.o, c.c / c.groups, c.kh, c.kw}, 2), b = random_plain({c.o}, 3);
    const Tensor slopes = random_plain({c.o}, 5), gate = random_plain({c.n, c.o, 1, 1}, 6);
    for (const bool nhwc : {true, false}) {
      const Tensor x = nhwc ? random_nhwc({c.n, c.c, c.h, c.w}, 1, 2) : random_plain({c.n, c.c, c.h, c.w}, 1);
      const std::vector<int64_t> out = {c.n, c.o, g.height, g.width};
      const Tensor residual = nhwc ? random_nhwc(out, 4, 7) : random_plain(out, 4);
      const TensorView y = nhwc ? TensorView::nhwc(DType::f32, out) : TensorView::plain(DType::f32, out);
      const auto conv = meaning("conv2d", {x, w, b}, attrs_of(c));
      const int64_t pixels = g.height * g.width;
      std::vector<double> relu(conv.size()), steps(conv.size()), leaky(conv.size());
      for (size_t i = 0; i < conv.size(); ++i) {
        const size_t channel = i / static_cast<size_t>(pixels) % static_cast<size_t>(c.o);
        const size_t image = i / static_cast<size_t>(pixels * c.o);
        relu[i] = std::max(0.0, conv[i] + residual.values[i]);
        leaky[i] = std::clamp(conv[i] > 0 ? conv[i] : 0.25 * conv[i], -0.1, 0.8);
        double v = conv[i] > 0 ? conv[i] : conv[i] * slopes.values[channel];
        v = v * gate.values[image * static_cast<size_t>(c.o) + channel] + residual.values[i];
        steps[i] = 1.0 / (1.0 + std::exp(-v));
      }
      const Params params = params_of(c, true);
      const auto check = [&](const std::vector<Tensor>& inputs, const std::vector<double>& expected,
                             const std::string& what, const std::vector<Step>& taken) {
        for (const std::string& kernel : serving(c, inputs, y, taken))
          check_kernel(kernel, inputs, {y}, params, {expected}, tolerance_of(kernel),
                       text(kernel, " ", what, describe(c)), taken);
      };
      check({x, w, b, residual}, relu, "add relu ", {{"add", 3, {}}, {"relu", -1, {}}});
      check({x, w, b}, leaky, "leaky relu clamp ", {{"leaky_relu", -1, {0.25}}, {"clamp", -1, {-0.1, 0.8}}});
      check({x, w, b, slopes, gate, residual}, steps, "prelu gate add sigmoid ",
            {{"prelu", 3, {}}, {"mul", 4, {}}, {"add", 5, {}}, {"sigmoid", -1, {}}});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ConvTranspose2d, MatchesItsMeaning) {
  const std::vector<Case> cases = {
      {.n = 2, .c = 5, .h = 4, .w = 6, .o = 19, .kh = 4, .kw = 4, .sh = 2, .sw = 2, .padding = {1, 1, 1, 1}},
      {.c = 12, .h = 5, .w = 3, .o = 8, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .padding = {1, 1, 1, 1}},
      {.c = 6, .h = 4, .w = 4, .o = 10, .kh = 2, .kw = 2, .sh = 2, .sw = 2},
      {.c = 6,
       .h = 4,
       .w = 5,
       .o = 10,
       .kh = 3,
       .kw = 2,
       .sh = 3,
       .sw = 2,
       .padding = {1, 0, 1, 0},
       .dh = 2,
       .groups = 2},
      {.c = 6, .h = 3, .w = 3, .o = 6, .kh = 1, .kw = 1, .sh = 2, .sw = 3},
      {.n = 2, .c = 12, .h = 5, .w = 7, .o = 18, .kh = 3, .kw = 2, .padding = {1, 0, 2, 1}, .dh = 2, .groups = 2},
      {.c = 3, .h = 6, .w = 5, .o = 20, .kh = 3, .kw = 4, .padding = {2, 3, 0, 1}}};
  for (Case c : cases)
    for (const int64_t extra : {0, 1})
      for (const bool nhwc : {true, false}) {
        if (extra >= c.sh || extra >= c.sw) continue;
        c.kernel = c.sh == 1 && c.sw == 1 && nhwc ? "conv_transpose2d_direct" : "conv_transpose2d_phases";
        const Size g = {(c.h - 1) * c.sh - c.padding[0] - c.padding[2] + (c.kh - 1) * c.dh + 1 + extra,
                        (c.w - 1) * c.sw - c.padding[1] - c.padding[3] + (c.kw - 1) * c.dw + 1 + extra};
        const Tensor x = nhwc ? random_nhwc({c.n, c.c, c.h, c.w}, 1, 1) : random_plain({c.n, c.c, c.h, c.w}, 1);
        const Tensor w = random_plain({c.c, c.o / c.groups, c.kh, c.kw}, 2), b = random_plain({c.o}, 3);
        const std::vector<int64_t> out = {c.n, c.o, g.height, g.width};
        ops::Attrs attrs = attrs_of(c);
        attrs.emplace("output_padding", dims({extra, extra}));
        auto expected = meaning("conv_transpose2d", {x, w, b}, std::move(attrs));
        for (double& v : expected) v = std::tanh(v);
        check_kernel(c.kernel, {x, w, b},
                     {nhwc ? TensorView::nhwc(DType::f32, out, c.o + 1) : TensorView::plain(DType::f32, out)},
                     params_of(c, true), {expected}, 2e-6, "conv_transpose2d " + describe(c), {{"tanh", -1, {}}});
        if (HasFatalFailure()) return;
      }
}

TEST(Conv2dWeightGradient, MatchesItsMeaning) {
  const std::vector<Case> cases = {
      {.n = 3, .c = 16, .h = 9, .w = 8, .o = 16, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}},
      {.n = 2, .c = 1, .h = 12, .w = 11, .o = 6, .kh = 5, .kw = 5, .padding = {2, 2, 2, 2}},
      {.n = 2, .c = 19, .h = 7, .w = 6, .o = 35},
      {.n = 2, .c = 5, .h = 11, .w = 10, .o = 9, .kh = 3, .kw = 4, .sh = 2, .sw = 3, .padding = {1, 0, 2, 3}},
      {.n = 5, .c = 6, .h = 9, .w = 12, .o = 4, .kh = 2, .kw = 3, .sh = 3, .sw = 2, .padding = {0, 2, 1, 0}, .dh = 2},
      {.n = 2, .c = 12, .h = 6, .w = 7, .o = 30, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 3},
      {.n = 2, .c = 7, .h = 6, .w = 7, .o = 7, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .groups = 7},
      {.c = 2, .h = 2, .w = 3, .o = 5, .kh = 5, .kw = 7, .padding = {3, 4, 3, 4}},
      {.n = 8, .c = 8, .h = 70, .w = 64, .o = 8, .kh = 3, .kw = 3},  // more images than are copied at once
      {.n = 0, .c = 2, .h = 5, .w = 5, .o = 3, .kh = 3, .kw = 3}};
  for (const Case& c : cases)
    for (const int layouts : {0, 1, 2}) {
      const Size g = output_of(c);
      const std::vector<int64_t> image = {c.n, c.c, c.h, c.w}, result = {c.n, c.o, g.height, g.width};
      const Tensor x = layouts == 0 ? random_plain(image, 1) : random_nhwc(image, 1, 3);
      const Tensor gradient = layouts == 2 ? random_plain(result, 2) : random_nhwc(result, 2, layouts);
      ops::Attrs attrs = attrs_of(c);
      attrs.emplace("kernel", dims({c.kh, c.kw}));
      const auto expected = meaning("conv2d_weight_gradient", {x, gradient}, std::move(attrs));
      check_kernel("conv2d_weight_gradient", {x, gradient},
                   {TensorView::plain(DType::f32, std::vector<int64_t>{c.o, c.c / c.groups, c.kh, c.kw})},
                   params_of(c, false), {expected}, 2e-6, "conv2d_weight_gradient " + describe(c));
      if (HasFatalFailure()) return;
    }
}

TEST(Conv2d, NamesWhatDoesNotFit) {
  const Tensor x = random_nhwc({1, 4, 5, 5}, 1), w = random_plain({8, 3, 3, 3}, 2);
  EXPECT_ERROR(
      run_kernel("conv2d_direct", {x, w}, {TensorView::nhwc(DType::f32, std::vector<int64_t>{1, 8, 3, 3})}, {}),
      InternalError, "weight [8,3,3,3]", "x of 4 channels");
  const Tensor fitting = random_plain({8, 4, 3, 3}, 3);
  EXPECT_ERROR(
      run_kernel("conv2d_direct", {x, fitting}, {TensorView::nhwc(DType::f32, std::vector<int64_t>{1, 8, 3, 3})},
                 {{"padding", std::vector<int64_t>{0, -1}}}),
      Unsupported, "a padding of 0 or more; got -1");
}

// The best of all rows for such a square layer inside a network.
std::string_view best_conv(int64_t batch, int64_t channels, int64_t size, int64_t out_channels, int64_t kernel,
                           int64_t stride, int64_t groups = 1, bool plain = false) {
  const std::vector<int64_t> image = {batch, channels, size, size};
  const std::vector<TensorView> in = {
      plain ? TensorView::plain(DType::f32, image) : TensorView::nhwc(DType::f32, image),
      TensorView::of_weight(DType::f32, std::vector<int64_t>{out_channels, channels / groups, kernel, kernel})};
  const int64_t out_size = (size + kernel / 2 * 2 - kernel) / stride + 1;
  const TensorView out = TensorView::nhwc(DType::f32, std::vector<int64_t>{batch, out_channels, out_size, out_size});
  const Params params = {{"stride", std::vector<int64_t>{stride, stride}},
                         {"padding", std::vector<int64_t>{kernel / 2, kernel / 2}},
                         {"groups", groups}};
  std::vector<const Variant*> rows;
  for (const Variant& each : all_kernels())
    if (each.op == "conv2d") rows.push_back(&each);
  const std::vector<Ranked> found = ranked(rows, {in, {&out, 1}, params}, {});
  EXPECT_FALSE(found.front().refusal);
  EXPECT_TRUE(found.back().refusal) << "integers are none of these";
  return found.front().variant->name;
}

TEST(Conv2d, WinogradIsBestWhereItMultipliesLessAndItsWeightsAreNotTooMany) {
  EXPECT_EQ(best_conv(1, 64, 56, 64, 3, 1), "conv2d_winograd");
  EXPECT_EQ(best_conv(1, 256, 14, 256, 3, 1), "conv2d_winograd");
  EXPECT_EQ(best_conv(1, 512, 14, 512, 3, 1), "conv2d_winograd");
  EXPECT_EQ(best_conv(1, 16, 56, 16, 3, 1), "conv2d_winograd");
  EXPECT_EQ(best_conv(1, 512, 7, 512, 3, 1), "conv2d_winograd_2x2");
  EXPECT_EQ(best_conv(1, 256, 7, 256, 3, 1), "conv2d_direct");
  EXPECT_EQ(best_conv(1, 64, 56, 64, 3, 2), "conv2d_direct");
  EXPECT_EQ(best_conv(1, 64, 56, 64, 5, 1), "conv2d_direct");
}

TEST(Conv2d, NarrowConvolutionsAreNoProducts) {
  EXPECT_EQ(best_conv(1, 96, 56, 96, 3, 1, 96), "conv2d_depthwise");
  EXPECT_EQ(best_conv(1, 1152, 7, 1152, 5, 1, 1152), "conv2d_depthwise");
  EXPECT_EQ(best_conv(1, 128, 56, 128, 3, 1, 32), "conv2d_grouped");
  EXPECT_EQ(best_conv(1, 512, 14, 512, 3, 1, 32), "conv2d_direct");
  EXPECT_EQ(best_conv(1, 3, 224, 64, 7, 2, 1, true), "conv2d_few_channels");
  EXPECT_EQ(best_conv(1, 3, 240, 10, 3, 1, 1, true), "conv2d_planes");
  EXPECT_EQ(best_conv(1, 3, 224, 8, 3, 2, 1, true), "conv2d_planes");
  for (const int64_t outputs : {16, 24, 32})
    EXPECT_EQ(best_conv(1, 3, 224, outputs, 3, 2, 1, true), "conv2d_few_channels") << outputs;
}

TEST(Conv2d, TheDeterministicOptionRefusesWinograd) {
  const std::vector<TensorView> in = {TensorView::nhwc(DType::f32, std::vector<int64_t>{1, 64, 56, 56}),
                                      TensorView::of_weight(DType::f32, std::vector<int64_t>{64, 64, 3, 3})};
  const Params params = {{"padding", std::vector<int64_t>{1, 1}}, {"deterministic", int64_t{1}}};
  EXPECT_EQ(refusal_of(*find_kernel("conv2d_winograd"), {in, {in.data(), 1}, params}),
            "conv2d_winograd rounds otherwise than sums of products do.");
}

// What was packed for one is run by another where sizes are others than when compiling.
TEST(Conv2d, KernelsOfOnePackingAreExchanged) {
  const auto of_width = [](int64_t width) {
    const std::vector<TensorView> in = {TensorView::plain(DType::f32, std::vector<int64_t>{1, 3, 8, width}),
                                        TensorView::of_weight(DType::f32, std::vector<int64_t>{24, 3, 3, 3})};
    const TensorView out = TensorView::nhwc(DType::f32, std::vector<int64_t>{1, 24, 8, width});
    const Params params = {{"padding", std::vector<int64_t>{1, 1}}};
    return exchanged(*find_kernel("conv2d_few_channels"), {in, {&out, 1}, params}).name;
  };
  EXPECT_EQ(of_width(48), "conv2d_planes");
  EXPECT_EQ(of_width(17), "conv2d_few_channels");
}

// Blocks of pixels end inside an image and begin in the next; each pixel gets its own image's gate.
TEST(ScaledConv, EqualsTheProductThenTheConvolution) {
  const int64_t batch = 3, channels = 37, height = 29, width = 31, filters = 50;
  const Tensor x = random_nhwc({batch, channels, height, width}, 1, 3),
               weight = random_plain({filters, channels, 1, 1}, 2), gate = random_nhwc({batch, channels, 1, 1}, 3, 2),
               bias = random_plain({filters}, 4), residual = random_nhwc({batch, filters, height, width}, 5);
  auto expected = meaning("scaled_conv2d", {x, weight, gate, bias});
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, expected[i] + residual.values[i]);
  check_kernel("scaled_conv2d", {x, weight, gate, bias, residual}, {residual.view}, {{"bias", int64_t{1}}}, {expected},
               1e-6, "gated", {{"add", 4, {}}, {"relu", -1, {}}});
}

// Of widths up to and beyond whole vectors, and of one whose rows would collide.
TEST(ScaledConv, EqualsTheNormThenTheConvolution) {
  for (const int64_t channels : {5, 37, 64, 1024}) {
    const Tensor x = random_nhwc({2, channels, 7, 5}, 1, 3), weight = random_plain({50, channels, 1, 1}, 2),
                 scale = random_nhwc({1, channels, 1, 1}, 3), shift = random_nhwc({1, channels, 1, 1}, 4),
                 bias = random_plain({50}, 5);
    const TensorView y = TensorView::nhwc(DType::f32, std::vector<int64_t>{2, 50, 7, 5});
    for (const bool relu : {false, true}) {
      const auto expected = meaning("scaled_conv2d", {x, weight, scale, bias, shift}, {{"relu", relu}});
      check_kernel("scaled_conv2d", {x, weight, scale, bias, shift}, {y},
                   {{"bias", int64_t{1}}, {"shift", int64_t{1}}, {"relu", int64_t{relu}}}, {expected}, 1e-6, "norm");
    }
    Tensor none = bias;
    std::ranges::fill(none.values, 0);
    const auto expected = meaning("scaled_conv2d", {x, weight, scale, none, shift}, {{"relu", true}});
    check_kernel("scaled_conv2d", {x, weight, scale, shift}, {y}, {{"shift", int64_t{1}}, {"relu", int64_t{1}}},
                 {expected}, 1e-6, "norm without a bias");
  }
}

// Of several bands and of one, at both ends of images; by threads whose shares begin within an image.
TEST(BandedConv, EqualsTheConvolutionsOneAfterTheOther) {
  struct Sizes {
    int64_t batch, channels, between, height, width, kernel, stride;
    std::vector<int64_t> padding;
  };
  for (const Sizes& s : {Sizes{1, 16, 96, 100, 40, 3, 1, {1, 1}}, Sizes{2, 5, 96, 75, 61, 3, 2, {0, 1, 1, 0}},
                         Sizes{1, 8, 72, 64, 57, 5, 2, {2, 2}}, Sizes{3, 7, 20, 9, 8, 3, 1, {2, 0, 1, 2}},
                         Sizes{1, 4, 33, 90, 150, 1, 3, {0, 0}}}) {
    SCOPED_TRACE(s.height);
    const std::vector<int64_t> p =
        s.padding.size() == 4 ? s.padding : std::vector{s.padding[0], s.padding[1], s.padding[0], s.padding[1]};
    const std::vector<int64_t> out = {s.batch, s.between, (s.height + p[0] + p[2] - s.kernel) / s.stride + 1,
                                      (s.width + p[1] + p[3] - s.kernel) / s.stride + 1};
    const Tensor x = random_nhwc({s.batch, s.channels, s.height, s.width}, 1, 3),
                 pointwise = random_plain({s.between, s.channels, 1, 1}, 2),
                 depthwise = random_plain({s.between, 1, s.kernel, s.kernel}, 3), a = random_plain({s.between}, 4),
                 b = random_plain({s.between}, 5), residual = random_nhwc(out, 6, 2),
                 slopes = random_nhwc({s.batch, s.between, 1, 1}, 7);
    const ops::Attrs attrs = {{"stride", std::vector<Dim>{s.stride, s.stride}},
                              {"padding", std::vector<Dim>(s.padding.begin(), s.padding.end())},
                              {"function", std::string("clamp")},
                              {"values", std::vector<double>{-0.5, 1.5}}};
    Params params(attrs);
    params.set("pointwise_bias", int64_t{1});
    params.set("bias", int64_t{1});
    auto expected = meaning("pointwise_depthwise_conv2d", {x, pointwise, depthwise, a, b}, attrs);
    check_kernel("pointwise_depthwise_conv2d", {x, pointwise, depthwise, a, b}, {residual.view}, params, {expected},
                 1e-5, "bands");
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto of_image = i / static_cast<size_t>(out[2] * out[3]);  // image and channel
      expected[i] = (std::max(0.0, expected[i]) + residual.values[i]) * slopes.values[of_image];
    }
    check_kernel("pointwise_depthwise_conv2d", {x, pointwise, depthwise, a, b, residual, slopes}, {residual.view},
                 params, {expected}, 1e-5, "steps", {{"relu", -1, {}}, {"add", 5, {}}, {"mul", 6, {}}});
    if (HasFatalFailure()) return;
  }
}

TEST(BandedConv, RefusesWindowsBesideTheImage) {
  const Tensor x = random_nhwc({1, 5, 6, 6}, 1), pointwise = random_plain({4, 5, 1, 1}, 2),
               depthwise = random_plain({4, 1, 3, 3}, 3);
  const TensorView y = TensorView::nhwc(DType::f32, std::vector<int64_t>{1, 4, 10, 4});
  EXPECT_ERROR(run_kernel("pointwise_depthwise_conv2d", {x, pointwise, depthwise}, {y},
                          {{"padding", std::vector<int64_t>{3, 0}}}),
               Unsupported, "takes windows that meet the image; got a padding of 3 and 3 rows");
}

TEST(ScaledConv, RefusesAScaleOfAnotherShape) {
  const Tensor x = random_nhwc({3, 5, 3, 3}, 1), weight = random_plain({4, 5, 1, 1}, 2),
               scale = random_nhwc({2, 5, 1, 1}, 3), good = random_nhwc({3, 5, 1, 1}, 4);
  const TensorView y = TensorView::nhwc(DType::f32, std::vector<int64_t>{3, 4, 3, 3});
  EXPECT_ERROR(run_kernel("scaled_conv2d", {x, weight, scale}, {y}, {}), Unsupported,
               "scaled_conv2d takes x [N,C,H,W], weight [M,C,1,1] and scale [N or 1,C,1,1]", "[2,5,1,1]");
  EXPECT_ERROR(run_kernel("scaled_conv2d", {x, weight, good, scale}, {y}, {{"shift", int64_t{1}}}), Unsupported,
               "scaled_conv2d takes a shift [N or 1,C,1,1]", "[2,5,1,1]");
}

}  // namespace
}  // namespace hetnn::kernels::testing
