// batch_norm: normalization by stored statistics, as in inference.
#include <cmath>

#include "hetnn/base/convert.h"
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.shape.size() < 2)
    fail(call, "batch_norm_c1", text("the input must be [N,C,...]; got ", to_string(x.shape), "."));
  check_parameters(call, 1, 5, {x.shape[1]}, "batch_norm_c2");
  return {x};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const double eps = e.call.real("eps");
  const int64_t images = x.shape[0], channels = x.shape[1];
  int64_t inner = 1;
  for (const int64_t dim : x.shape.subspan(2)) inner *= dim;
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = y.values<T>();
    const auto at = [&](size_t input, int64_t channel, double absent) {
      return e.has(input) ? static_cast<double>(e.input(input).values<T>()[static_cast<size_t>(channel)]) : absent;
    };
    for (int64_t plane = 0; plane < images * channels; ++plane) {
      const int64_t c = plane % channels;
      const double mean = at(3, c, 0), deviation = std::sqrt(at(4, c, 1) + eps), weight = at(1, c, 1),
                   bias = at(2, c, 0);
      for (int64_t k = plane * inner; k < (plane + 1) * inner; ++k)
        to[k] = convert<T>((static_cast<double>(from[k]) - mean) / deviation * weight + bias);
    }
  });
}

}  // namespace

OpDef define_batch_norm() {
  return {
      .name = "batch_norm",
      .doc = "Normalization by stored statistics: y = (x - mean) / sqrt(variance + eps) * weight + bias, per channel.",
      .inputs =
          {{"x", "[N,C,...]"}, {"weight", "[C]", true}, {"bias", "[C]", true}, {"mean", "[C]"}, {"variance", "[C]"}},
      .attrs = {{"eps", AttrKind::real, 1e-5, "added to the variance"}},
      .traits = Trait::channelwise | Trait::wide,
      .torch = {},
      .onnx = {"BatchNormalization"},
      .infer = infer,
      .meaning = meaning,
      .keeps_batch = keeps_batch_of_first,
      .constraints = {},
      .tolerance = 1e-5,
      .samples = {"batch_norm(f32[2,3,4,5], f32[3] {1, 2, 0.5}, f32[3], f32[3], f32[3] {0.5, 1, 2})",
                  "batch_norm(f32[n,2], _, _, f32[2], f32[2] {1, 3})"}};
}

}  // namespace hetnn::ops
