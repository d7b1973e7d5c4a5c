// conv_transpose2d: the gradient of conv2d with regard to its input, as a layer that enlarges images.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

// x [N,C,H,W], weight [C,M/groups,KH,KW], bias [M] -> y [N,M,OH,OW].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1);
  const Dim groups = convolution_groups(call);
  if (w.shape[0] != x.shape[1] || mod(w.shape[0], groups) != Dim(0)) {
    fail(call, "conv_transpose2d_c3",
         text("weight must have in_channels, a multiple of groups, on axis 0; got weight ", to_string(w.shape),
              " with input ", to_string(x.shape), ", groups ", groups, ". Check the input's channels."));
  }
  const Dim filters = w.shape[1] * groups;
  check_convolution_bias(call, filters);
  const Window window = window_of(call);
  const std::vector<int64_t> extra = per_axis(call, "output_padding", 2);
  Shape y = {x.shape[0], filters};
  for (size_t k = 0; k < 2; ++k) {
    const auto [stride, dilation] = std::pair(window[k].stride, window[k].dilation);
    if (stride < 1 || dilation < 1 || extra[k] < 0 || extra[k] >= std::max(stride, dilation)) {
      fail(call, "conv_transpose2d_c5",
           text("stride and dilation must be positive, output_padding at least 0 and below one of them; got ",
                to_string(call.integers("stride")), ", ", to_string(call.integers("dilation")), " and ",
                to_string(call.integers("output_padding")), "."));
    }
    y.push_back(window[k].spread(x.shape[2 + k], extra[k]));
    if (y.back().is_static() && y.back().value() < 0) {
      fail(call, "conv_transpose2d_c6",
           text("padding must take no more than there is; got input ", to_string(x.shape), ", weight ",
                to_string(w.shape), ", padding ", to_string(call.integers("padding")), ". Pad less."));
    }
  }
  return {{x.dtype, y}};
}

// y[n,m,i·stride + r·dilation - pad, …] = bias[m] + sum over c,i,r,… of x[n,c,i,…] · w[c, m mod M/G, r, …]
void meaning(const Evaluation& e) {
  const View &x = e.input(0), &w = e.input(1);
  const Result y = e.output();
  const Window window = window_of(e.call);
  const WindowAxis &down = window[0], &across = window[1];
  const int64_t filters = y.shape[1], rows = y.shape[2], columns = y.shape[3], height = x.shape[2], width = x.shape[3];
  const int64_t per_group = w.shape[1], kernel_h = w.shape[2], kernel_w = w.shape[3];
  const int64_t channels = x.shape[1] / fixed_integer(e.call, "groups");  // of one group
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *weight = w.values<T>().data();
    std::vector<Sum<T>> sums(static_cast<size_t>(columns));
    T* to = y.values<T>();
    for (int64_t row = 0; row < y.shape[0] * filters * rows; ++row) {
      const int64_t n = row / (filters * rows), m = row / rows % filters, first = m / per_group * channels;
      std::fill(sums.begin(), sums.end(),
                e.has(2) ? static_cast<Sum<T>>(e.input(2).values<T>()[static_cast<size_t>(m)]) : Sum<T>(0));
      // The taps that meet a row of x.
      const int64_t top = row % rows + down.before, below = std::max<int64_t>(top - (height - 1) * down.stride, 0);
      for (int64_t r = (below + down.dilation - 1) / down.dilation; r < kernel_h && r * down.dilation <= top; ++r) {
        const int64_t at = top - r * down.dilation;  // the row of x, times the stride
        if (at % down.stride != 0 || at / down.stride >= height) continue;
        for (int64_t s = 0; s < kernel_w; ++s) {
          const int64_t left = s * across.dilation - across.before;
          const Interval read = across.windows(s, width, columns);
          for (int64_t c = first; c < first + channels; ++c) {
            const T* from = in + ((n * x.shape[1] + c) * height + at / down.stride) * width;
            const auto factor =
                static_cast<Sum<T>>(weight[((c * per_group + m % per_group) * kernel_h + r) * kernel_w + s]);
            for (int64_t j = read.begin; j < read.end; ++j)
              sums[static_cast<size_t>(left + j * across.stride)] += factor * static_cast<Sum<T>>(from[j]);
          }
        }
      }
      for (const Sum<T> sum : sums) *to++ = static_cast<T>(sum);
    }
  });
}

// Every input meets every tap once; what falls into the padding is counted, too.
Work work(const Call& call) {
  const Shape& w = call.input(1).shape;
  return {.macs = elements(call.input(0).shape) * w[1] * w[2] * w[3],
          .flops = call.has(2) ? elements(call.output().shape) : Dim(0)};
}

}  // namespace

OpDef define_conv_transpose2d() {
  return {.name = "conv_transpose2d",
          .doc =
              "Two-dimensional transposed convolution: every x[n,c,i,j] adds x * weight[c,m,r,q] to "
              "y[n,m,i*s+r*d-p,j*s+q*d-p].",
          .inputs = {{"x", "[N,C,H,W]"}, {"weight", "[C,M/groups,KH,KW]"}, {"bias", "[M]", true}},
          .attrs = {{"stride", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                    {"padding", AttrKind::integers, std::vector<Dim>{0, 0},
                     "what is cut from the result: height, width; or top, left, bottom, right"},
                    {"output_padding", AttrKind::integers, std::vector<Dim>{0, 0},
                     "rows and columns more at the bottom and the right"},
                    {"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                    {"groups", AttrKind::integer, Dim(1), "channel groups"}},
          .traits = Trait::compute | Trait::wide,
          .torch = {},
          .onnx = {"ConvTranspose"},
          .infer = infer,
          .meaning = meaning,
          .work = work,
          .keeps_batch = keeps_batch_of_first,
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"conv_transpose2d(f32[1,3,5,4], f32[3,4,2,2], f32[4]) {stride = [2,2]}",
                      "conv_transpose2d(f32[2,4,4,5], f32[4,3,3,4], _) {stride = [2,3], padding = [1,1], "
                      "output_padding = [1,2], groups = 2}",
                      "conv_transpose2d(f32[1,2,6,5], f32[2,3,3,2], f32[3]) {dilation = [2,1], padding = [1,0,2,1]}",
                      "conv_transpose2d(f32[n,2,h,w], f32[2,5,2,2], f32[5]) {stride = [2,2]}"}};
}

}  // namespace hetnn::ops
