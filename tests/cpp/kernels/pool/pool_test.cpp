// Pools against their meanings.
#include <limits>

#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

struct Case {
  int64_t c = 1, h = 1, w = 1;
  std::vector<int64_t> kernel = {2, 2}, stride = {2, 2}, padding = {0, 0, 0, 0}, dilation = {1, 1};
  bool ceil_mode = false;
};

// The attributes that all pools have.
ops::Attrs attrs_of(const Case& c) {
  return {{"kernel", dims_of(c.kernel)},
          {"stride", dims_of(c.stride)},
          {"padding", dims_of(c.padding)},
          {"ceil_mode", c.ceil_mode}};
}

const std::vector<Case> kCases = {
    {.c = 5, .h = 8, .w = 9},
    {.c = 70, .h = 7, .w = 7, .kernel = {3, 3}, .padding = {1, 1, 1, 1}},
    {.c = 16, .h = 7, .w = 10, .kernel = {3, 2}, .stride = {2, 3}, .ceil_mode = true},
    {.c = 33, .h = 6, .w = 5, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 0, 0, 1}, .ceil_mode = true},
    {.c = 3, .h = 12, .w = 11, .kernel = {5, 4}, .stride = {1, 1}, .padding = {2, 2, 2, 2}}};

// f(x, its output) in every layout, for outputs of this height and width.
template <typename F>
void for_layouts(const Case& c, int64_t height, int64_t width, F f) {
  const std::vector<int64_t> in = {2, c.c, c.h, c.w}, out = {2, c.c, height, width};
  f(random_nhwc(in, 1), TensorView::nhwc(DType::f32, out));
  f(random_nhwc(in, 1, 3), TensorView::nhwc(DType::f32, out, c.c + 5));
  f(random_plain(in, 1), TensorView::plain(DType::f32, out));
}

// The same for a pool of images, whose outputs have the size that the operator infers.
template <typename F>
void for_layouts(const Case& c, F f) {
  ops::Attrs attrs = attrs_of(c);
  attrs.emplace("dilation", dims_of(c.dilation));
  const auto y = run_meaning("max_pool2d", {hetnn::Tensor::zeros(DType::f32, {2, c.c, c.h, c.w})}, std::move(attrs));
  for_layouts(c, y.shape()[2], y.shape()[3], f);
}

TEST(MaxPoolIndices, MatchesItsMeaning) {
  std::vector<Case> cases = kCases;
  cases.push_back({.c = 6, .h = 9, .w = 9, .kernel = {3, 3}, .stride = {1, 2}, .dilation = {2, 2}});
  for (const Case& c : cases) {
    for_layouts(c, [&](Tensor x, const TensorView& y) {
      for (size_t k = 0; k < x.values.size(); k += 3) x.values[k] = 0.5;  // equals
      x.values[3] = x.values[4] = std::nan("");
      ops::Attrs attrs = attrs_of(c);
      attrs.emplace("dilation", dims_of(c.dilation));
      const Params params = {
          {"kernel", c.kernel}, {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}};
      check_kernel("max_pool_indices", {x}, {TensorView::plain(DType::i64, y.shape())}, params,
                   {meaning("max_pool_indices", {x}, std::move(attrs))}, 0.0, "max_pool_indices");
    });
    if (HasFatalFailure()) return;
  }
}

TEST(MaxPoolGradient, MatchesItsMeaning) {
  std::vector<Case> cases = kCases;
  cases.push_back({.c = 6, .h = 9, .w = 9, .kernel = {3, 3}, .stride = {1, 2}, .dilation = {2, 2}});
  cases.push_back({.c = 6, .h = 8, .w = 6, .kernel = {2, 2}, .stride = {2, 2}});
  cases.push_back({.c = 33, .h = 7, .w = 9, .kernel = {2, 1}, .stride = {3, 2}});
  for (const Case& c : cases) {
    for_layouts(c, [&](Tensor x, const TensorView& y) {
      for (size_t k = 0; k < x.values.size(); k += 3) x.values[k] = 0.5;  // equals
      x.values[3] = x.values[4] = std::nan("");
      const std::vector<int64_t> made(y.shape().begin(), y.shape().end());
      const Tensor gradient = y.layout == hetnn::Layout::nhwc ? random_nhwc(made, 2, 1) : random_plain(made, 2);
      ops::Attrs attrs = attrs_of(c);
      attrs.emplace("dilation", dims_of(c.dilation));
      const Params params = {
          {"kernel", c.kernel}, {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}};
      check_kernel("max_pool_gradient", {x, gradient}, {x.view}, params,
                   {meaning("max_pool_gradient", {x, gradient}, std::move(attrs))}, 1e-6, "max_pool_gradient");
    });
    if (HasFatalFailure()) return;
  }
}

TEST(MaxPool2d, MatchesItsMeaning) {
  std::vector<Case> cases = kCases;
  cases.push_back({.c = 6, .h = 9, .w = 9, .kernel = {3, 3}, .stride = {1, 2}, .dilation = {2, 2}});
  for (const Case& c : cases) {
    for_layouts(c, [&](Tensor x, const TensorView& y) {
      x.values[3] = std::nan("");
      ops::Attrs attrs = attrs_of(c);
      attrs.emplace("dilation", dims_of(c.dilation));
      check_kernel("max_pool2d", {x}, {y},
                   {{"kernel", c.kernel}, {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}},
                   {meaning("max_pool2d", {x}, std::move(attrs))}, 0.0, "max_pool2d");
    });
    if (HasFatalFailure()) return;
  }
}

TEST(MaxPool2d, OfHalvesIsThatOfTheirValues) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Case> cases = kCases;
  cases.push_back({.c = 6, .h = 9, .w = 9, .kernel = {3, 3}, .stride = {1, 2}, .dilation = {2, 2}});
  cases.push_back({.c = 64, .h = 12, .w = 12, .kernel = {3, 3}, .padding = {1, 1, 1, 1}});
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Case& c : cases) {
      for_layouts(c, [&](Tensor x, TensorView y) {
        x.view.dtype = y.dtype = dtype;
        x.values = short_values(x.view.elems(), 7);
        const auto set = [&](size_t begin, double value) {
          for (size_t k = begin; k < x.values.size(); k += 41) x.values[k] = value;
        };
        set(3, std::nan(""));
        set(7, -std::nan(""));
        set(11, kInfinity);
        set(13, -kInfinity);
        set(17, -0.0);
        set(19, 1e-6);  // a denormal of f16
        for (size_t k = 0; k < x.values.size(); ++k)
          x.values[k] = static_cast<double>(widen_float(dtype, narrow_float(dtype, static_cast<float>(x.values[k]))));
        ops::Attrs attrs = attrs_of(c);
        attrs.emplace("dilation", dims_of(c.dilation));
        check_kernel("max_pool2d_f16", {x}, {y},
                     {{"kernel", c.kernel}, {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}},
                     {meaning("max_pool2d", {x}, std::move(attrs))}, 0.0, "max_pool2d_f16");
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AvgPool2d, MatchesItsMeaningForEveryDivisor) {
  for (const Case& c : kCases) {
    for (const int64_t include : {0, 1})
      for (const int64_t divisor : {0, 7})
        for_layouts(c, [&](const Tensor& x, const TensorView& y) {
          ops::Attrs attrs = attrs_of(c);
          attrs.insert({{"count_include_pad", include != 0}, {"divisor_override", Dim(divisor)}});
          auto expected = meaning("avg_pool2d", {x}, std::move(attrs));
          for (double& v : expected) v = std::max(0.0, v);
          check_kernel("avg_pool2d", {x}, {y},
                       {{"kernel", c.kernel},
                        {"stride", c.stride},
                        {"padding", c.padding},
                        {"count_include_pad", include},
                        {"divisor_override", divisor}},
                       {expected}, 1e-6, "avg_pool2d", {{"relu", -1, {}}});
        });
    if (HasFatalFailure()) return;
  }
}

TEST(AdaptivePool2d, MatchesItsMeaningIncludingGlobal) {
  for (const int64_t channels : {1, 20, 130})
    for (const std::vector<int64_t>& out : {std::vector<int64_t>{1, 1}, {3, 2}, {7, 5}, {9, 10}}) {
      for_layouts({.c = channels, .h = 7, .w = 5}, out[0], out[1], [&](const Tensor& x, const TensorView& y) {
        check_kernel("adaptive_avg_pool2d", {x}, {y}, {},
                     {meaning("adaptive_avg_pool2d", {x}, {{"output_size", dims_of(out)}})}, 1e-6, "average");
      });
      if (HasFatalFailure()) return;
    }
}

TEST(MaxPool2d, OneSizeOfAKernelIsThatOfBothAxes) {
  const Tensor x = random_plain({1, 2, 9, 7}, 1);
  check_kernel("max_pool2d", {x}, {TensorView::plain(DType::f32, std::vector<int64_t>{1, 2, 3, 2})},
               {{"kernel", std::vector<int64_t>{3}}}, {meaning("max_pool2d", {x}, {{"kernel", dims({3})}})}, 0.0,
               "max_pool2d");
}

}  // namespace
}  // namespace hetnn::kernels::testing
