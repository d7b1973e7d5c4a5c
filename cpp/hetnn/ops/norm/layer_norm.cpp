// layer_norm: normalization over the last axes.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/norm/last_axes.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) { return infer_over_last_axes(call, 3); }

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t n = elems_together(e);
  if (x.elems() == 0) return;
  const auto count = static_cast<double>(n);
  const double eps = e.call.real("eps");
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    // Absent: what changes nothing, the sign of zero included.
    const auto wide = [&](size_t input, double absent) {
      std::vector<double> out(static_cast<size_t>(n), absent);
      if (e.has(input)) std::ranges::copy(e.input(input).values<T>(), out.begin());
      return out;
    };
    const std::vector<double> weight = wide(1, 1), bias = wide(2, -0.0);
    std::vector<double> row(weight.size());
    T* to = y.values<T>();
    for (int64_t first = 0; first < x.elems(); first += n) {
      std::ranges::copy(x.values<T>().subspan(static_cast<size_t>(first), row.size()), row.begin());
      double mean = 0, square = 0;
      for (const double v : row) mean += v / count;
      for (const double v : row) square += (v - mean) * (v - mean) / count;
      const double deviation = std::sqrt(square + eps);
      for (size_t k = 0; k < row.size(); ++k) *to++ = static_cast<T>((row[k] - mean) / deviation * weight[k] + bias[k]);
    }
  });
}

}  // namespace

OpDef define_layer_norm() {
  return {
      .name = "layer_norm",
      .doc = "Normalization over the last axes: y = (x - mean) / sqrt(variance + eps) * weight + bias.",
      .inputs = {{"x", "any shape"}, {"weight", "the last axes' shape", true}, {"bias", "the last axes' shape", true}},
      .attrs = {{"axes", AttrKind::integer, Dim(1), "how many axes at the end are normalized together"},
                {"eps", AttrKind::real, 1e-5, "added to the variance"}},
      .traits = static_cast<uint32_t>(Trait::wide),
      .primitive = Primitive::normalize,
      .torch = {},
      .onnx = {"LayerNormalization"},
      .infer = infer,
      .meaning = meaning,
      .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.output().shape) * 6}; },
      .keeps_batch = keeps_batch_before_axes,
      .constraints = {},
      .tolerance = 1e-5,
      .samples = {"layer_norm(f32[2,3,8], f32[8], f32[8])", "layer_norm(f32[n,4,5], _, _) {axes = 2}"}};
}

}  // namespace hetnn::ops
