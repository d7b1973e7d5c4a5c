// batch_norm_gradient: the gradients of batch_norm_training with regard to its inputs.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/norm/channels.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &gradient = call.input(0), &x = call.input(1);
  if (x.rank() < 2 || !is_float(x.dtype) || gradient != x) {
    fail(call, "batch_norm_gradient_c1",
         text("gradient and x must be reals [N,C,...] of one shape; got ", to_string(gradient), " and ", to_string(x),
              ". Check their shapes."));
  }
  const Type channels{x.dtype, {x.shape[1]}};
  check_parameters(call, 2, 5, channels.shape, "batch_norm_gradient_c2");
  return {x, channels, channels};
}

// With z = (x - mean) scale, and means over the batch:
// of_bias = Σ g, of_weight = Σ g z, of_x = weight scale (g - mean(g) - z mean(g z)).
void meaning(const Evaluation& e) {
  const View &gradient = e.input(0), &x = e.input(1);
  const Result of_x = e.output(0), of_weight = e.output(1), of_bias = e.output(2);
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *from = x.values<T>().data(), *by = gradient.values<T>().data();
    for (int64_t c = 0; c < x.shape[1]; ++c) {
      const double mean = of_channel<T>(e, 3, c, 0), scale = of_channel<T>(e, 4, c, 1);
      const auto normal = [&](int64_t at) { return (static_cast<double>(from[at]) - mean) * scale; };
      double count = 0, sum = 0, product = 0;
      for_channel(x.shape, c, [&](int64_t at) {
        const auto g = static_cast<double>(by[at]);
        ++count;
        sum += g;
        product += g * normal(at);
      });
      const double factor = of_channel<T>(e, 2, c, 1) * scale;
      for_channel(x.shape, c, [&](int64_t at) {
        of_x.values<T>()[at] =
            static_cast<T>(factor * (static_cast<double>(by[at]) - sum / count - normal(at) * (product / count)));
      });
      of_weight.values<T>()[c] = static_cast<T>(product);
      of_bias.values<T>()[c] = static_cast<T>(sum);
    }
  });
}

}  // namespace

OpDef define_batch_norm_gradient() {
  return {.name = "batch_norm_gradient",
          .doc =
              "The gradients of batch_norm_training: with z = (x - mean) * scale, of_x = weight * scale * (gradient - "
              "mean(gradient) - z * mean(gradient * z)), of_weight = sum(gradient * z), of_bias = sum(gradient).",
          .inputs = {{"gradient", "[N,C,...], of the result"},
                     {"x", "[N,C,...]"},
                     {"weight", "[C]", true},
                     {"mean", "[C], of the batch"},
                     {"scale", "[C], 1 / sqrt(variance + eps)"}},
          .outputs = {"of_x", "of_weight", "of_bias"},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape) * 8}; },
          .tolerance = 1e-5,
          .samples = {"batch_norm_gradient(f32[4,3,5,6], f32[4,3,5,6], f32[3], f32[3], f32[3])",
                      "batch_norm_gradient(f32[n,20], f32[n,20], _, f32[20], f32[20])",
                      "batch_norm_gradient(f32[3,2,7], f32[3,2,7], f32[2], f32[2] {0.5, -1}, f32[2] {1, 2})"}};
}

}  // namespace hetnn::ops
