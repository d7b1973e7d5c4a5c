// batch_norm: normalization by stored statistics, as in inference.
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
  if (x.shape.size() < 2)
    fail(call, "batch_norm_c1", text("the input must be [N,C,...]; got ", to_string(x.shape), "."));
  for (size_t k = 1; k < 5; ++k) {
    if (call.has(k) && call.input(k).shape != Shape{x.shape[1]}) {
      fail(call, "batch_norm_c2",
               text("'", call.op->inputs[k].name, "' must be ", to_string(Shape{x.shape[1]}), "; got ",
                    to_string(call.input(k).shape), ". Check num_features."));
    }
  }
  return {x};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  const double eps = e.call.real("eps");
  int64_t inner = 1;
  for (int k = 2; k < x.rank(); ++k) inner *= x.shape()[static_cast<size_t>(k)];
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), x.shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto in = x.values<T>();
    auto at = [&](size_t input, size_t channel, double absent) {
      return e.has(input) ? static_cast<double>(e.input(input).values<T>()[channel]) : absent;
    };
    for (size_t k = 0; k < in.size(); ++k) {
      const size_t c = k / static_cast<size_t>(inner) % static_cast<size_t>(x.shape()[1]);
      const double normal = (static_cast<double>(in[k]) - at(3, c, 0)) / std::sqrt(at(4, c, 1) + eps);
      mutable_values<T>(data)[k] = static_cast<T>(normal * at(1, c, 1) + at(2, c, 0));
    }
  });
  return {y};
}

}  // namespace

OpDef define_batch_norm() {
  return {
      .name = "batch_norm",
      .doc = "Normalization by stored statistics: y = (x - mean) / sqrt(variance + eps) * weight + bias, per channel.",
      .inputs =
          {{"x", "[N,C,...]"}, {"weight", "[C]", true}, {"bias", "[C]", true}, {"mean", "[C]"}, {"variance", "[C]"}},
      .attrs = {{"eps", AttrKind::real, 1e-5, "added to the variance"}},
      .traits = static_cast<uint32_t>(Trait::channelwise),
      .torch = {},
      .onnx = {"BatchNormalization"},
      .infer = infer,
      .evaluate = evaluate,
      .constraints = {},
      .tolerance = 1e-5,
      .samples = {"batch_norm(f32[2,3,4,5], f32[3] {1, 2, 0.5}, f32[3], f32[3], f32[3] {0.5, 1, 2})",
                  "batch_norm(f32[n,2], _, _, f32[2], f32[2] {1, 3})"}};
}

}  // namespace hetnn::ops
