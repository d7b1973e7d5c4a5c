// batch_norm_training: normalization by the batch's own statistics, which it gives, too.
#include <cmath>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/norm/channels.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.rank() < 2 || !is_float(x.dtype)) {
    fail(call, "batch_norm_training_c1",
         text("the input must be reals [N,C,...]; got ", to_string(x), ". Check its shape."));
  }
  check_parameters(call, 1, 3, {x.shape[1]}, "batch_norm_training_c2");
  return {x, {x.dtype, {x.shape[1]}}, {x.dtype, {x.shape[1]}}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output(0), means = e.output(1), variances = e.output(2);
  const double eps = e.call.real("eps");
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      double count = 0, mean = 0, variance = 0;
      for_channel(x.shape, c, [&](int64_t at) { mean += static_cast<double>(from[at]), ++count; });
      mean /= count;
      for_channel(x.shape, c, [&](int64_t at) {
        const double away = static_cast<double>(from[at]) - mean;
        variance += away * away;
      });
      variance /= count;
      const double factor = of_channel<T>(e, 1, c, 1) / std::sqrt(variance + eps), bias = of_channel<T>(e, 2, c, 0);
      for_channel(x.shape, c, [&](int64_t at) {
        y.values<T>()[at] = static_cast<T>((static_cast<double>(from[at]) - mean) * factor + bias);
      });
      means.values<T>()[c] = static_cast<T>(mean);
      variances.values<T>()[c] = static_cast<T>(variance);
    }
  });
}

}  // namespace

OpDef define_batch_norm_training() {
  return {.name = "batch_norm_training",
          .doc =
              "Normalization of every channel by its mean and variance in the batch: y = (x - mean) / sqrt(variance + "
              "eps) * weight + bias.",
          .inputs = {{"x", "[N,C,...]"}, {"weight", "[C]", true}, {"bias", "[C]", true}},
          .attrs = {{"eps", AttrKind::real, 1e-5, "added to the variance"}},
          .outputs = {"y", "mean", "variance"},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape) * 6}; },
          .tolerance = 1e-5,
          .samples = {"batch_norm_training(f32[4,3,5,6], f32[3], f32[3])", "batch_norm_training(f32[n,20], _, f32[20])",
                      "batch_norm_training(f32[3,2,7], _, _) {eps = 0.001}"}};
}

}  // namespace hetnn::ops
