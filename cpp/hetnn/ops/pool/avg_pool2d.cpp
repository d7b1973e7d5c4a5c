// avg_pool2d: the mean of every window.
#include "hetnn/ops/pool/window.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  if (fixed_integer(call, "divisor_override") < 0) {
    fail(call, "avg_pool2d_c5",
             text("divisor_override must not be negative; got ", call.integer("divisor_override"), "."));
  }
  return infer_pool(call);
}

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
      double sum = 0;
      int64_t inside = 0, padded = 0;
      for (int64_t r = 0; r < kernel[0]; ++r) {
        const int64_t i = at[2] * stride[0] + r * dilation[0] - pad[0];
        for (int64_t s = 0; s < kernel[1]; ++s) {
          const int64_t j = at[3] * stride[1] + s * dilation[1] - pad[1];
          padded += i < in[2] + pad[2] && j < in[3] + pad[3];
          if (i < 0 || i >= in[2] || j < 0 || j >= in[3]) continue;
          const T value = xv[static_cast<size_t>(((at[0] * in[1] + at[1]) * in[2] + i) * in[3] + j)];
          sum += static_cast<double>(value);
          ++inside;
        }
      }
      const int64_t divisor = fixed_integer(e.call, "divisor_override");
      *to++ = static_cast<T>(sum / static_cast<double>(divisor > 0                        ? divisor
                                                       : e.call.flag("count_include_pad") ? padded
                                                                                          : inside));
    });
  });
  return {y};
}

}  // namespace

OpDef define_avg_pool2d() {
  return {
      .name = "avg_pool2d",
      .doc = "The mean of every window.",
      .inputs = {{"x", "[N,C,H,W]"}},
      .attrs = pool_attrs({{"count_include_pad", AttrKind::boolean, true, "whether padding counts in the divisor"},
                           {"divisor_override", AttrKind::integer, Dim(0), "the divisor; 0: the window's size"}}),
      .traits = static_cast<uint32_t>(Trait::compute),
      .torch = {{"aten.avg_pool2d.default", "x kernel stride padding ceil_mode count_include_pad divisor_override"}},
      .onnx = {"AveragePool"},
      .infer = infer,
      .evaluate = evaluate,
      .work = pool_work,
      .metrics = pool_metrics,
      .constraints = {},
      .kernel = pool_kernel("avg_pool2d", {"count_include_pad", "divisor_override"}),
      .tolerance = 1e-6,
      .samples = {"avg_pool2d(f32[1,3,8,9]) {kernel = [2,2]}",
                  "avg_pool2d(f32[2,5,h,7]) {kernel = [3,3], stride = [2,2], padding = [1,1], ceil_mode = true}"}};
}

}  // namespace hetnn::ops
