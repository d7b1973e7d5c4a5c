// Pools against plain loops.
#include "../kernel_runner.h"
#include "hetnn/kernels/pool/reference.h"

namespace hetnn::kernels::testing {
namespace {

struct Case {
  int64_t c = 1, h = 1, w = 1;
  std::vector<int64_t> kernel = {2, 2}, stride = {2, 2}, padding = {0, 0, 0, 0}, dilation = {1, 1};
  bool ceil_mode = false;
};

int64_t out_size(int64_t in, int64_t before, int64_t after, int64_t kernel, int64_t stride, int64_t dilation,
                 bool ceil_mode) {
  const int64_t span = in + before + after - (kernel - 1) * dilation - 1;
  int64_t out = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  // The last window must start inside the image or its leading padding.
  if (ceil_mode && (out - 1) * stride >= in + before) --out;
  return out;
}

WindowGeometry geometry_of(const Case& c) {
  WindowGeometry g;
  g.batch = 2;
  g.channels = g.out_channels = c.c;
  g.height = c.h;
  g.width = c.w;
  g.kernel_h = c.kernel[0];
  g.kernel_w = c.kernel[1];
  g.stride_h = c.stride[0];
  g.stride_w = c.stride[1];
  g.pad_top = c.padding[0];
  g.pad_left = c.padding[1];
  g.pad_bottom = c.padding[2];
  g.pad_right = c.padding[3];
  g.dilation_h = c.dilation[0];
  g.dilation_w = c.dilation[1];
  g.out_height = out_size(c.h, g.pad_top, g.pad_bottom, g.kernel_h, g.stride_h, g.dilation_h, c.ceil_mode);
  g.out_width = out_size(c.w, g.pad_left, g.pad_right, g.kernel_w, g.stride_w, g.dilation_w, c.ceil_mode);
  return g;
}

const std::vector<Case> kCases = {
    {.c = 5, .h = 8, .w = 9},
    {.c = 70, .h = 7, .w = 7, .kernel = {3, 3}, .padding = {1, 1, 1, 1}},
    {.c = 16, .h = 7, .w = 10, .kernel = {3, 2}, .stride = {2, 3}, .ceil_mode = true},
    {.c = 33, .h = 6, .w = 5, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 0, 0, 1}, .ceil_mode = true},
    {.c = 3, .h = 12, .w = 11, .kernel = {5, 4}, .stride = {1, 1}, .padding = {2, 2, 2, 2}}};

template <typename F>
void for_layouts(const WindowGeometry& g, F f) {
  const std::vector<int64_t> in = {g.batch, g.channels, g.height, g.width};
  const std::vector<int64_t> out = {g.batch, g.channels, g.out_height, g.out_width};
  f(random_nhwc(in, 1), TensorView::nhwc(DType::f32, out));
  f(random_nhwc(in, 1, 3), TensorView::nhwc(DType::f32, out, g.channels + 5));
  f(random_plain(in, 1), TensorView::plain(DType::f32, out));
}

TEST(MaxPool2d, MatchesLoops) {
  std::vector<Case> cases = kCases;
  cases.push_back({.c = 6, .h = 9, .w = 9, .kernel = {3, 3}, .stride = {1, 2}, .dilation = {2, 2}});
  for (const Case& c : cases) {
    const WindowGeometry g = geometry_of(c);
    for_layouts(g, [&](Tensor x, const TensorView& y) {
      x.values[3] = std::nan("");
      check_kernel("max_pool2d", {x}, {y},
                   {{"kernel", c.kernel}, {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}},
                   {reference::max_pool2d(g, x.values)}, 0.0, "max_pool2d");
    });
    if (HasFatalFailure()) return;
  }
}

TEST(AvgPool2d, MatchesLoopsForEveryDivisor) {
  for (const Case& c : kCases) {
    const WindowGeometry g = geometry_of(c);
    for (const int64_t include : {0, 1})
      for (const int64_t divisor : {0, 7})
        for_layouts(g, [&](const Tensor& x, const TensorView& y) {
          auto expected = reference::avg_pool2d(g, x.values, include != 0, divisor);
          for (double& v : expected) v = std::max(0.0, v);
          check_kernel("avg_pool2d", {x}, {y},
                       {{"kernel", c.kernel},
                        {"stride", c.stride},
                        {"padding", c.padding},
                        {"count_include_pad", include},
                        {"divisor_override", divisor}},
                       {expected}, 1e-6, "avg_pool2d", steps_of("relu"));
        });
    if (HasFatalFailure()) return;
  }
}

TEST(AdaptivePool2d, MatchesLoopsIncludingGlobal) {
  for (const int64_t channels : {1, 20, 130})
    for (const std::vector<int64_t>& out : {std::vector<int64_t>{1, 1}, {3, 2}, {7, 5}, {9, 10}}) {
      WindowGeometry g;
      g.batch = 2;
      g.channels = g.out_channels = channels;
      g.height = 7;
      g.width = 5;
      g.out_height = out[0];
      g.out_width = out[1];
      for_layouts(g, [&](const Tensor& x, const TensorView& y) {
        check_kernel("adaptive_avg_pool2d", {x}, {y}, {}, {reference::adaptive_pool2d(g, x.values, false)}, 1e-6,
                     "average");
        check_kernel("adaptive_max_pool2d", {x}, {y}, {}, {reference::adaptive_pool2d(g, x.values, true)}, 0.0,
                     "maximum");
      });
      if (HasFatalFailure()) return;
    }
}

TEST(MaxPool2d, NeedsAKernelSizePerAxis) {
  const Tensor x = random_plain({1, 2, 4, 4}, 1);
  try {
    run_kernel("max_pool2d", {x}, {TensorView::plain(DType::f32, std::vector<int64_t>{1, 2, 2, 2})},
               {{"kernel", std::vector<int64_t>{2}}});
    FAIL() << "accepted";
  } catch (const InvalidModel& error) {
    EXPECT_NE(std::string(error.what()).find("parameter kernel must have 2 values; got 1"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hetnn::kernels::testing
