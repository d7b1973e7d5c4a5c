// Convolutions as tests name them, run by every kernel that serves them and compared with their meanings.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "../kernel_runner.h"
#include "hetnn/kernels/conv/conv.h"

namespace hetnn::kernels::testing {

struct Case {
  int64_t n = 1, c = 1, h = 1, w = 1, o = 1;
  int64_t kh = 1, kw = 1;
  int64_t sh = 1, sw = 1;
  std::vector<int64_t> padding = {0, 0, 0, 0};
  int64_t dh = 1, dw = 1;
  int64_t groups = 1;
  std::string kernel = "";  // empty: each that serves
};

inline std::string describe(const Case& c) {
  return text("n", c.n, " c", c.c, " ", c.h, "x", c.w, " o", c.o, " k", c.kh, "x", c.kw, " s", c.sh, "x", c.sw, " p",
              c.padding[0], ",", c.padding[1], ",", c.padding[2], ",", c.padding[3], " d", c.dh, "x", c.dw, " g",
              c.groups, " ", c.kernel);
}

inline Params params_of(const Case& c, bool bias) {
  return {{"stride", std::vector<int64_t>{c.sh, c.sw}},
          {"padding", c.padding},
          {"dilation", std::vector<int64_t>{c.dh, c.dw}},
          {"groups", c.groups},
          {"bias", int64_t{bias}}};
}

inline ops::Attrs attrs_of(const Case& c) {
  return {{"stride", dims({c.sh, c.sw})},
          {"padding", dims_of(c.padding)},
          {"dilation", dims({c.dh, c.dw})},
          {"groups", Dim(c.groups)}};
}

struct Size {
  int64_t height, width;
};

inline Size output_of(const Case& c) {
  return {(c.h + c.padding[0] + c.padding[2] - (c.kh - 1) * c.dh - 1) / c.sh + 1,
          (c.w + c.padding[1] + c.padding[3] - (c.kw - 1) * c.dw - 1) / c.sw + 1};
}

// Winograd's sums and differences round otherwise.
inline double tolerance_of(std::string_view kernel) {
  return kernel == "conv2d_winograd" ? 1e-5 : kernel == "conv2d_winograd_2x2" ? 4e-6 : 2e-6;
}

inline std::vector<std::string> serving(const Case& c, const std::vector<Tensor>& inputs, const TensorView& y,
                                        const std::vector<Step>& steps = {}) {
  if (!c.kernel.empty()) return {c.kernel};
  const Params params = params_of(c, true);
  std::vector<TensorView> views;
  for (const Tensor& input : inputs) views.push_back(input.view);
  views[1] = TensorView::of_weight(DType::f32, views[1].shape());
  std::vector<std::string> out;
  for (const Variant& each : all_kernels())
    if (each.op == "conv2d" && !each.integers && !refusal_of(each, {views, {&y, 1}, params, steps}))
      out.emplace_back(each.name);
  return out;
}

// All layouts of input and output give the same, by every kernel that serves them.
inline void check_conv(const Case& c) {
  const Size g = output_of(c);
  ASSERT_GE(g.height, 1);
  ASSERT_GE(g.width, 1);
  const Tensor w = random_plain({c.o, c.c / c.groups, c.kh, c.kw}, 2), b = random_plain({c.o}, 3);
  const std::vector<int64_t> out = {c.n, c.o, g.height, g.width};
  for (const int layouts : {0, 1, 2, 3}) {
    const Tensor x = layouts >= 2 ? random_plain({c.n, c.c, c.h, c.w}, 1)
                                  : random_nhwc({c.n, c.c, c.h, c.w}, 1, layouts == 1 ? 5 : 0);
    const TensorView y = layouts == 2 ? TensorView::plain(DType::f32, out)
                                      : TensorView::nhwc(DType::f32, out, c.o + (layouts % 2 == 1 ? 3 : 0));
    const auto expected = meaning("conv2d", {x, w, b}, attrs_of(c));
    for (const std::string& kernel : serving(c, {x, w, b}, y)) {
      check_kernel(kernel, {x, w, b}, {y}, params_of(c, true), {expected}, tolerance_of(kernel),
                   kernel + " " + describe(c) + " layouts " + std::to_string(layouts));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace hetnn::kernels::testing
