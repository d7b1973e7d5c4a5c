// avg_pool2d: the mean of every window.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  const ir::Type& x = node.input(0)->type();
  if (x.shape.size() != 4)
    ir::fail(node, "avg_pool2d_c1", text("the input must be [N,C,H,W]; got ", to_string(x.shape), ". Check its rank."));
  if (fixed_integer(node, "divisor_override") < 0) {
    ir::fail(node, "avg_pool2d_c5",
             text("divisor_override must not be negative; got ", node.integer("divisor_override"), "."));
  }
  const auto kernel = per_axis(node, "kernel", 2), stride = stride_of(node), dilation = std::vector<int64_t>{1, 1},
             pad = padding_of(node);
  Shape y = {x.shape[0], x.shape[1]};
  for (size_t k = 0; k < 2; ++k) {
    if (kernel[k] < 1 || stride[k] < 1 || dilation[k] < 1)
      ir::fail(node, "avg_pool2d_c2",
               text("kernel and stride must be positive; got ", to_string(node.integers("kernel")), " and ",
                    to_string(node.integers("stride")), "."));
    if (pad[k] * 2 > kernel[k] || pad[k] < 0)
      ir::fail(node, "avg_pool2d_c3",
               text("padding must be at most half the kernel; got ", to_string(node.integers("padding")),
                    " with kernel ", to_string(node.integers("kernel")), "."));
    y.push_back(
        window_size(x.shape[2 + k], kernel[k], stride[k], dilation[k], pad[k], pad[2 + k], node.flag("ceil_mode")));
    if (y.back().is_static() && y.back().value() < 1)
      ir::fail(node, "avg_pool2d_c4",
               text("the window must fit in the padded input; got input ", to_string(x.shape), " and kernel ",
                    to_string(node.integers("kernel")), ". Give a larger input."));
  }
  return {{x.dtype, y}};
}

std::vector<Tensor> evaluate(const ir::Evaluation& e) {
  const Tensor& x = e.input(0);
  const auto kernel = per_axis(e.node, "kernel", 2), stride = stride_of(e.node), dilation = std::vector<int64_t>{1, 1},
             pad = padding_of(e.node);
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
      const int64_t divisor = fixed_integer(e.node, "divisor_override");
      *to++ = static_cast<T>(sum / static_cast<double>(divisor > 0                        ? divisor
                                                       : e.node.flag("count_include_pad") ? padded
                                                                                          : inside));
    });
  });
  return {y};
}

ir::Work work(const ir::Node& node) {
  const auto kernel = per_axis(node, "kernel", 2);
  return {.macs = 0, .flops = elements(node.output()->shape()) * kernel[0] * kernel[1]};
}

std::vector<ir::Metric> metrics(const ir::Node& node) {
  const auto kernel = per_axis(node, "kernel", 2), stride = stride_of(node);
  return {{"kernel_h", kernel[0]}, {"kernel_w", kernel[1]}, {"stride_h", stride[0]}, {"stride_w", stride[1]}};
}

}  // namespace

ir::OpDef define_avg_pool2d() {
  return {
      .name = "avg_pool2d",
      .doc = "The mean of every window.",
      .inputs = {{"x", "[N,C,H,W]"}},
      .attrs = {{"kernel", ir::AttrKind::integers, std::nullopt, "height, width"},
                {"stride", ir::AttrKind::integers, std::vector<Dim>{}, "height, width; empty: the kernel"},
                {"padding", ir::AttrKind::integers, std::vector<Dim>{0, 0},
                 "height, width; or top, left, bottom, right"},
                {"count_include_pad", ir::AttrKind::boolean, true, "whether padding counts in the divisor"},
                {"divisor_override", ir::AttrKind::integer, Dim(0), "the divisor; 0: the window's size"},
                {"ceil_mode", ir::AttrKind::boolean, false, "whether a last, partial window counts"}},
      .traits = static_cast<uint32_t>(ir::Trait::compute),
      .torch = {{"aten.avg_pool2d.default", "x kernel stride padding ceil_mode count_include_pad divisor_override"}},
      .onnx = {"AveragePool"},
      .infer = infer,
      .evaluate = evaluate,
      .work = work,
      .metrics = metrics,
      .constraints = {},
      .kernel =
          [](const ir::Node& node) {
            ir::KernelUse use =
                named_kernel("avg_pool2d", {"kernel", "padding", "count_include_pad", "divisor_override"},
                             ir::KernelUse::Layout::channels_last, true)(node);
            const auto stride = stride_of(node);
            use.params["stride"] = std::vector<Dim>(stride.begin(), stride.end());
            return use;
          },
      .tolerance = 1e-6,
      .samples = {"avg_pool2d(f32[1,3,8,9]) {kernel = [2,2]}",
                  "avg_pool2d(f32[2,5,h,7]) {kernel = [3,3], stride = [2,2], padding = [1,1], ceil_mode = true}"}};
}

}  // namespace hetnn::ops
