// adaptive_avg_pool2d: means over a grid of a given size.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& size = call.integers("output_size");
  if (x.shape.size() != 4 || size.size() != 2) {
    fail(call, "adaptive_avg_pool2d_c1",
             text("the input must be [N,C,H,W] and output_size two integers; got ", to_string(x.shape), " and ",
                  to_string(size), "."));
  }
  return {{x.dtype, {x.shape[0], x.shape[1], size[0], size[1]}}};
}

// Window i of n over a size s spans [floor(i·s/n), ceil((i+1)·s/n)).
std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  const std::vector<int64_t> out = e.output_shape(), &in = x.shape();
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), out, &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto xv = x.values<T>();
    T* to = mutable_values<T>(data);
    for_each_index(out, [&](const std::vector<int64_t>& at) {
      const int64_t i0 = at[2] * in[2] / out[2], i1 = ((at[2] + 1) * in[2] + out[2] - 1) / out[2];
      const int64_t j0 = at[3] * in[3] / out[3], j1 = ((at[3] + 1) * in[3] + out[3] - 1) / out[3];
      double sum = 0;
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j)
          sum += static_cast<double>(xv[static_cast<size_t>(((at[0] * in[1] + at[1]) * in[2] + i) * in[3] + j)]);
      }
      *to++ = static_cast<T>(sum / static_cast<double>((i1 - i0) * (j1 - j0)));
    });
  });
  return {y};
}

}  // namespace

OpDef define_adaptive_avg_pool2d() {
  return {.name = "adaptive_avg_pool2d",
          .doc = "Means over a grid of output_size windows; [1,1] is the global mean.",
          .inputs = {{"x", "[N,C,H,W]"}},
          .attrs = {{"output_size", AttrKind::integers, std::nullopt, "height, width of the output"}},
          .traits = static_cast<uint32_t>(Trait::compute),
          .torch = {{"aten.adaptive_avg_pool2d.default", "x output_size"},
                    {"aten._adaptive_avg_pool2d.default", "x output_size"}},
          .onnx = {},
          .infer = infer,
          .evaluate = evaluate,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape)}; },
          .constraints = {},
          .kernel = named_kernel("adaptive_avg_pool2d", {}, KernelUse::Layout::channels_last, true),
          .tolerance = 1e-5,
          .samples = {"adaptive_avg_pool2d(f32[2,3,7,5]) {output_size = [1,1]}",
                      "adaptive_avg_pool2d(f32[1,4,h,9]) {output_size = [3,2]}"}};
}

}  // namespace hetnn::ops
