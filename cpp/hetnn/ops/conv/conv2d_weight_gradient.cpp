// conv2d_weight_gradient: the gradient of conv2d with regard to its weight.
#include "hetnn/ops/window.h"

namespace hetnn::ops {
namespace {

// x [N,C,H,W], gradient of the result [N,M,OH,OW] -> gradient of the weight [M,C/groups,KH,KW].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &gradient = call.input(1);
  const Dim groups = call.integer("groups");
  if (x.rank() != 4 || gradient.rank() != 4) {
    fail(call, "conv2d_weight_gradient_c1",
         text("x and gradient must be images [N,C,H,W]; got ", to_string(x), " and ", to_string(gradient), "."));
  }
  if (x.dtype != gradient.dtype) {
    fail(call, "conv2d_weight_gradient_c2",
         text("x and gradient must be of one type; got ", to_string(x), " and ", to_string(gradient), "."));
  }
  if (!groups.is_static() || groups.value() < 1 || mod(x.shape[1], groups) != Dim(0) ||
      mod(gradient.shape[1], groups) != Dim(0)) {
    fail(call, "conv2d_weight_gradient_c3",
         text("groups must divide the channels of both; got ", groups, " with ", to_string(x), " and ",
              to_string(gradient), "."));
  }
  const Window window = window_of(call);
  if (!is_positive(window)) {
    fail(call, "conv2d_weight_gradient_c4",
         text("kernel, stride and dilation must be positive; got ", to_string(call.integers("kernel")), ", ",
              to_string(call.integers("stride")), " and ", to_string(call.integers("dilation")), "."));
  }
  if (const Shape made = windows_over(call, window, gradient.shape[1], false, "conv2d_weight_gradient_c5");
      made != gradient.shape) {
    fail(call, "conv2d_weight_gradient_c6",
         text("gradient must have the shape of the convolution's result, ", to_string(made), "; got ",
              to_string(gradient), "."));
  }
  return {{x.dtype, {gradient.shape[1], floor_div(x.shape[1], groups), Dim(window[0].kernel), Dim(window[1].kernel)}}};
}

// dw[m,c,r,s] = sum over n,i,j of x[n, g·C/G + c, i·stride + r·dilation - pad, …] · dy[n,m,i,j], g = m / (M/G)
void meaning(const Evaluation& e) {
  const View &x = e.input(0), &gradient = e.input(1);
  const Result y = e.output();
  const Window window = window_of(e.call);
  const int64_t height = x.shape[2], width = x.shape[3], rows = gradient.shape[2], columns = gradient.shape[3];
  const int64_t filters = y.shape[0], channels = y.shape[1];
  const int64_t per_group = filters / fixed_integer(e.call, "groups");
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *of_y = gradient.values<T>().data();
    T* to = y.values<T>();
    for (int64_t k = 0; k < y.elems(); ++k) {
      const int64_t s = k % window[1].kernel, r = k / window[1].kernel % window[0].kernel;
      const int64_t pair = k / taps_of(window), m = pair / channels, c = m / per_group * channels + pair % channels;
      const Interval down = window[0].windows(r, rows, height), across = window[1].windows(s, columns, width);
      Sum<T> sum = 0;
      for (int64_t n = 0; n < x.shape[0]; ++n) {
        for (int64_t i = down.begin; i < down.end; ++i) {
          const T* from = in + ((n * x.shape[1] + c) * height + window[0].begin(i) + r * window[0].dilation) * width +
                          s * window[1].dilation - window[1].before;
          const T* by = of_y + ((n * filters + m) * rows + i) * columns;
          for (int64_t j = across.begin; j < across.end; ++j)
            sum += static_cast<Sum<T>>(from[j * window[1].stride]) * static_cast<Sum<T>>(by[j]);
        }
      }
      to[k] = static_cast<T>(sum);
    }
  });
}

Work work(const Call& call) {
  const Shape& w = call.output().shape;
  return {.macs = elements(call.input(1).shape) * w[1] * w[2] * w[3]};
}

}  // namespace

OpDef define_conv2d_weight_gradient() {
  return {
      .name = "conv2d_weight_gradient",
      .doc =
          "The gradient of a convolution with regard to its weight: y[m,c,r,q] = sum x[n,c,i*s+r*d-p,j*s+q*d-p] * "
          "gradient[n,m,i,j].",
      .inputs = {{"x", "[N,C,H,W]"}, {"gradient", "[N,M,OH,OW], of the convolution's result"}},
      .attrs = {{"kernel", AttrKind::integers, std::nullopt, "height, width of the weight"},
                {"stride", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"padding", AttrKind::integers, std::vector<Dim>{0, 0}, "height, width; or top, left, bottom, right"},
                {"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"},
                {"groups", AttrKind::integer, Dim(1), "channel groups"}},
      .traits = Trait::compute | Trait::wide,
      .infer = infer,
      .meaning = meaning,
      .work = work,
      .tolerance = 1e-5,
      .samples = {"conv2d_weight_gradient(f32[2,3,8,7], f32[2,4,6,5]) {kernel = [3,3]}",
                  "conv2d_weight_gradient(f32[2,4,9,7], f32[2,6,5,6]) {kernel = [3,2], stride = [2,1], "
                  "padding = [1,0], groups = 2}",
                  "conv2d_weight_gradient(f32[1,6,10,10], f32[1,6,8,8]) {kernel = [3,3], padding = [1,1], "
                  "dilation = [2,2], groups = 6}",
                  "conv2d_weight_gradient(f32[n,2,5,6], f32[n,5,5,6]) {kernel = [1,1]}"}};
}

}  // namespace hetnn::ops
