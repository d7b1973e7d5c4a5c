// layer_norm: normalization over the last axes.
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
  const int64_t axes = fixed_integer(call, "axes");
  if (axes < 1 || axes > static_cast<int64_t>(x.shape.size()))
    fail(call, "layer_norm_c1", text("axes must be in [1, ", x.shape.size(), "]; got ", axes, "."));
  const Shape tail(x.shape.end() - axes, x.shape.end());
  for (size_t k = 1; k < 3; ++k) {
    if (call.has(k) && call.input(k).shape != tail) {
      fail(call, "layer_norm_c2",
               text("'", call.op->inputs[k].name, "' must be ", to_string(tail), "; got ",
                    to_string(call.input(k).shape), ". Check normalized_shape."));
    }
  }
  return {x};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  int64_t n = 1;
  for (int64_t k = 0; k < fixed_integer(e.call, "axes"); ++k)
    n *= x.shape()[x.shape().size() - 1 - static_cast<size_t>(k)];
  const double eps = e.call.real("eps");
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), x.shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto in = x.values<T>();
    for (int64_t first = 0; n > 0 && first < x.elems(); first += n) {
      double mean = 0, square = 0;
      auto at = [&](int64_t k) { return static_cast<double>(in[static_cast<size_t>(first + k)]); };
      for (int64_t k = 0; k < n; ++k) mean += at(k) / static_cast<double>(n);
      for (int64_t k = 0; k < n; ++k) square += (at(k) - mean) * (at(k) - mean) / static_cast<double>(n);
      for (int64_t k = 0; k < n; ++k) {
        double value = (at(k) - mean) / std::sqrt(square + eps);
        if (e.has(1)) value *= static_cast<double>(e.input(1).values<T>()[static_cast<size_t>(k)]);
        if (e.has(2)) value += static_cast<double>(e.input(2).values<T>()[static_cast<size_t>(k)]);
        mutable_values<T>(data)[first + k] = static_cast<T>(value);
      }
    }
  });
  return {y};
}

}  // namespace

OpDef define_layer_norm() {
  return {
      .name = "layer_norm",
      .doc = "Normalization over the last axes: y = (x - mean) / sqrt(variance + eps) * weight + bias.",
      .inputs = {{"x", "any shape"}, {"weight", "the last axes' shape", true}, {"bias", "the last axes' shape", true}},
      .attrs = {{"axes", AttrKind::integer, Dim(1), "how many axes at the end are normalized together"},
                {"eps", AttrKind::real, 1e-5, "added to the variance"}},
      .traits = 0,
      .torch = {},
      .onnx = {"LayerNormalization"},
      .infer = infer,
      .evaluate = evaluate,
      .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.output().shape) * 6}; },
      .constraints = {},
      .kernel =
          [](const Call& call) {
            KernelUse use = named_kernel("layer_norm", {"axes", "eps"}, KernelUse::Layout::plain, true)(call);
            use.params["weight"] = Dim(call.has(1));
            use.params["bias"] = Dim(call.has(2));
            return use;
          },
      .tolerance = 1e-5,
      .samples = {"layer_norm(f32[2,3,8], f32[8], f32[8])", "layer_norm(f32[n,4,5], _, _) {axes = 2}"}};
}

}  // namespace hetnn::ops
