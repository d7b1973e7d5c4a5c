// conv2d: cross-correlation over images, as torch and ONNX call convolution.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

constexpr int64_t kMostDivisor = int64_t{1} << 23;  // sums of so many steps have 31 bits

// x [N,C,H,W], weight [M,C/groups,KH,KW], bias [M] -> y [N,M,OH,OW].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1);
  const Dim groups = convolution_groups(call);
  if (w.shape[1] * groups != x.shape[1] || mod(w.shape[0], groups) != Dim(0)) {
    fail(call, "conv2d_c3",
         text("weight must have in_channels/groups on axis 1 and a multiple of groups on axis 0; got weight ",
              to_string(w.shape), " with input ", to_string(x.shape), ", groups ", groups,
              ". Check the input's channels."));
  }
  check_convolution_bias(call, w.shape[0]);
  const Window window = window_of(call);
  if (window[0].stride < 1 || window[1].stride < 1 || window[0].dilation < 1 || window[1].dilation < 1) {
    fail(call, "conv2d_c5",
         text("stride and dilation must be positive; got ", to_string(call.integers("stride")), " and ",
              to_string(call.integers("dilation")), "."));
  }
  const Dim divisor = call.integer("q_divisor");
  if (divisor != Dim(1) && (!divisor.is_static() || divisor.value() < 1 || divisor.value() > kMostDivisor ||
                            !call.attrs.contains(kQuantRounding))) {
    fail(call, "conv2d_c7",
         text("q_divisor is a whole number up to ", kMostDivisor, " and goes with q_rounding; got ", divisor, "."));
  }
  return {{x.dtype, windows_over(call, window, w.shape[0], false, "conv2d_c6")}};
}

// sums[k] += factor x[k step] for k of an interval.
template <typename S, typename W>
void add_row(const W* x, int64_t step, S factor, Interval of, S* sums) {
  if (step == 1) {
    for (int64_t k = of.begin; k < of.end; ++k) sums[k] += factor * static_cast<S>(x[k]);
  } else {
    for (int64_t k = of.begin; k < of.end; ++k) sums[k] += factor * static_cast<S>(x[k * step]);
  }
}

// y[n,m,i,j] = bias[m] + sum over c,r,s of x[n, g·C/G + c, i·stride + r·dilation - pad, …] · w[m,c,r,s], g = m / (M/G)
void meaning(const Evaluation& e) {
  const View &x = e.input(0), &w = e.input(1);
  const Result y = e.output();
  const Window window = window_of(e.call);
  const int64_t filters = y.shape[1], rows = y.shape[2], columns = y.shape[3];
  const int64_t channels = w.shape[1], kernel_h = w.shape[2], kernel_w = w.shape[3];  // of one group
  const int64_t per_group = filters / fixed_integer(e.call, "groups");
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *weight = w.values<T>().data();
    std::vector<Sum<T>> sums(static_cast<size_t>(columns));
    T* to = y.values<T>();
    for (int64_t row = 0; row < y.shape[0] * filters * rows; ++row) {
      const int64_t n = row / (filters * rows), m = row / rows % filters;
      const int64_t top = window[0].begin(row % rows);
      const Interval inner = window[0].taps(row % rows, x.shape[2]);
      std::fill(sums.begin(), sums.end(),
                e.has(2) ? static_cast<Sum<T>>(e.input(2).values<T>()[static_cast<size_t>(m)]) : Sum<T>(0));
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t plane = n * x.shape[1] + m / per_group * channels + c;
        for (int64_t r = inner.begin; r < inner.end; ++r) {
          for (int64_t s = 0; s < kernel_w; ++s) {
            const int64_t left = s * window[1].dilation - window[1].before;
            add_row(in + (plane * x.shape[2] + top + r * window[0].dilation) * x.shape[3] + left, window[1].stride,
                    static_cast<Sum<T>>(weight[((m * channels + c) * kernel_h + r) * kernel_w + s]),
                    window[1].windows(s, columns, x.shape[3]), sums.data());
          }
        }
      }
      for (const Sum<T> sum : sums) *to++ = static_cast<T>(sum);
    }
  });
}

Work work(const Call& call) {
  const Shape& w = call.input(1).shape;
  return {.macs = elements(call.output().shape) * w[1] * w[2] * w[3],
          .flops = call.has(2) ? elements(call.output().shape) : Dim(0)};
}

std::vector<Metric> metrics(const Call& call) {
  const Shape& w = call.input(1).shape;
  const Window window = window_of(call);
  return {{"kernel_h", window[0].kernel},     {"kernel_w", window[1].kernel},       {"stride_h", window[0].stride},
          {"stride_w", window[1].stride},     {"dilation_h", window[0].dilation},   {"dilation_w", window[1].dilation},
          {"groups", call.integer("groups")}, {"channels", call.input(0).shape[1]}, {"filters", w[0]}};
}

}  // namespace

OpDef define_conv2d() {
  return {
      .name = "conv2d",
      .doc =
          "Two-dimensional cross-correlation: y[n,m,i,j] = bias[m] + sum x[n,c,i*s+r*d-p,j*s+q*d-p] * weight[m,c,r,q].",
      .inputs = {{"x", "[N,C,H,W]"}, {"weight", "[M,C/groups,KH,KW]"}, {"bias", "[M]", true}},
      .attrs = {{"stride", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"padding", AttrKind::integers, std::vector<Dim>{0, 0}, "height, width; or top, left, bottom, right"},
                {"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"groups", AttrKind::integer, Dim(1), "channel groups; C for depthwise"},
                {"q_divisor", AttrKind::integer, Dim(1),
                 "of quantized means by weights of 1: what the factor of the sums is divided by, as q_rounding says"}},
      .traits = Trait::compute | Trait::wide,
      .primitive = Primitive::convolution,
      .torch = {},
      .onnx = {"Conv"},
      .infer = infer,
      .meaning = meaning,
      .work = work,
      .metrics = metrics,
      .keeps_batch = keeps_batch_of_first,
      .constraints = {constant_weights("conv2d_npu_c1")},
      .tolerance = 1e-5,
      .samples = {"conv2d(f32[1,3,8,8], f32[4,3,3,3], f32[4])",
                  "conv2d(f32[2,4,9,7], f32[6,2,3,2], _) {stride = [2,1], padding = [1,0], groups = 2}",
                  "conv2d(f32[1,6,10,10], f32[6,1,3,3], f32[6]) {padding = [1,1], dilation = [2,2], groups = 6}",
                  "conv2d(f32[1,2,h,w], f32[5,2,1,1], f32[5])"}};
}

}  // namespace hetnn::ops
