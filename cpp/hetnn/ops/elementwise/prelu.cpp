// prelu: y = max(x, 0) + slope * min(x, 0).
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

// x [N,C,...] (or any rank with one slope), slope [1] or [C] with C on axis 1.
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &slope = call.input(1);
  if (x.dtype != slope.dtype || !is_real(x)) {
    fail(call, "prelu_c1",
             text("input and slope must be of one real type; got ", dtype_name(x.dtype), " and ",
                  dtype_name(slope.dtype), ". Cast one of them."));
  }
  const Dim channels = x.shape.size() >= 2 ? x.shape[1] : Dim(1);
  if (slope.shape.size() != 1 || (slope.shape[0] != Dim(1) && slope.shape[0] != channels)) {
    fail(call, "prelu_c2",
             text("slope must have shape [1] or one value a channel, [", channels, "]; got ", to_string(slope.shape),
                  ". Check num_parameters."));
  }
  return {x};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor &x = e.input(0), &slope = e.input(1);
  int64_t inner = 1;
  for (int k = 2; k < x.rank(); ++k) inner *= x.shape()[static_cast<size_t>(k)];
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), x.shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto in = x.values<T>(), a = slope.values<T>();
    for (size_t k = 0; k < in.size(); ++k) {
      const size_t channel = a.size() == 1 ? 0 : k / static_cast<size_t>(inner) % a.size();
      mutable_values<T>(data)[k] = in[k] > T(0) ? in[k] : static_cast<T>(in[k] * a[channel]);
    }
  });
  return {y};
}

}  // namespace

OpDef define_prelu() {
  return {.name = "prelu",
          .doc = "Parametric rectified linear unit, one slope or one a channel: y = max(x, 0) + slope * min(x, 0).",
          .inputs = {{"x", "[N,C,...]"}, {"slope", "[1] or [C]"}},
          .attrs = {},
          .traits = Trait::elementwise | Trait::channelwise,
          .torch = {{"aten.prelu.default", "x slope"}, {"aten._prelu_kernel.default", "x slope"}},
          .onnx = {},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel =
              [](const Call& call) {
                KernelUse use = binary_kernel("prelu", "prelu")(call);
                // The kernel broadcasts at the right, so slopes of a rank-2 input line up already.
                return use;
              },
          .tolerance = 1e-6,
          .samples = {"prelu(f32[2,3,5,7], f32[3])", "prelu(f32[2,3,4], f32[1])", "prelu(f32[n,6], f32[6])"}};
}

}  // namespace hetnn::ops
