// max_pool2d: the largest value of every window.
#include <limits>

#include "hetnn/ops/pool/window.h"

namespace hetnn::ops {
namespace {

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  const Window window = window_of(e.call);
  const auto &kernel = window.kernel, &stride = window.stride, &dilation = window.dilation, &pad = window.pad;
  const std::vector<int64_t> out = e.output_shape(), &in = x.shape();
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), out, &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto xv = x.values<T>();
    T* to = mutable_values<T>(data);
    for_each_index(out, [&](const std::vector<int64_t>& at) {
      T best =
          std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
      for (int64_t r = 0; r < kernel[0]; ++r) {
        const int64_t i = at[2] * stride[0] + r * dilation[0] - pad[0];
        for (int64_t s = 0; s < kernel[1]; ++s) {
          const int64_t j = at[3] * stride[1] + s * dilation[1] - pad[1];
          if (i < 0 || i >= in[2] || j < 0 || j >= in[3]) continue;
          const T value = xv[static_cast<size_t>(((at[0] * in[1] + at[1]) * in[2] + i) * in[3] + j)];
          if (value > best || value != value) best = value;
        }
      }
      *to++ = best;
    });
  });
  return {y};
}

}  // namespace

OpDef define_max_pool2d() {
  return {.name = "max_pool2d",
          .doc = "The largest value of every window; NaN wins.",
          .inputs = {{"x", "[N,C,H,W]"}},
          .attrs = pool_attrs({{"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"}}),
          .traits = static_cast<uint32_t>(Trait::compute),
          .torch = {{"aten.max_pool2d.default", "x kernel stride padding dilation ceil_mode"}},
          .onnx = {"MaxPool"},
          .infer = infer_pool,
          .evaluate = evaluate,
          .work = pool_work,
          .metrics = pool_metrics,
          .constraints = {},
          .kernel = pool_kernel("max_pool2d", {"dilation"}),
          .tolerance = 0,
          .samples = {"max_pool2d(f32[1,3,8,9]) {kernel = [2,2]}",
                      "max_pool2d(f32[2,5,h,7]) {kernel = [3,3], stride = [2,2], padding = [1,1], ceil_mode = true}"}};
}

}  // namespace hetnn::ops
