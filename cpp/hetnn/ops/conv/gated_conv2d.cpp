// gated_conv2d: a 1x1 convolution whose input is first multiplied by a gate, as squeeze and excitation does.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/product.h"

namespace hetnn::ops {
namespace {

// x [N,C,H,W], weight [M,C,1,1], gate [N,C,1,1], bias [M] -> y [N,M,H,W].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1), &gate = call.input(2);
  const bool fits = x.shape.size() == 4 && w.shape.size() == 4 && is_static(w.shape) &&
                    w.shape == Shape{w.shape[0], x.shape[1], 1, 1} &&
                    gate.shape == Shape{x.shape[0], x.shape[1], 1, 1} && x.dtype == w.dtype && x.dtype == gate.dtype;
  if (!fits) {
    fail(call, "gated_conv2d_c1",
         text("input, weight and gate must be [N,C,H,W], [M,C,1,1] and [N,C,1,1] of one type; got ", to_string(x), ", ",
              to_string(w), " and ", to_string(gate), ". Check the shapes."));
  }
  check_parameters(call, 3, 4, {w.shape[0]}, "gated_conv2d_c2");
  return {{x.dtype, {x.shape[0], w.shape[0], x.shape[2], x.shape[3]}}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t channels = x.shape[1], filters = y.shape[1], pixels = x.shape[2] * x.shape[3];
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *weight = e.input(1).values<T>().data(), *gate = e.input(2).values<T>().data();
    std::vector<Sum<T>> gated(static_cast<size_t>(channels * pixels));
    for (int64_t n = 0; n < x.shape[0]; ++n) {
      for (int64_t k = 0; k < channels * pixels; ++k) {
        gated[static_cast<size_t>(k)] =
            static_cast<T>(static_cast<Sum<T>>(in[n * channels * pixels + k]) *
                           static_cast<Sum<T>>(gate[n * channels + k / pixels]));  // rounded
      }
      T* to = y.values<T>() + n * filters * pixels;
      multiply<Sum<T>>(
          filters, pixels, channels, Matrix<T>{weight, channels, 1}, Matrix<Sum<T>>{gated.data(), pixels, 1},
          [&](int64_t m, int64_t) {
            return e.has(3) ? static_cast<Sum<T>>(e.input(3).values<T>()[static_cast<size_t>(m)]) : Sum<T>(0);
          },
          [=](int64_t m, int64_t pixel, Sum<T> sum) { to[m * pixels + pixel] = static_cast<T>(sum); });
    }
  });
}

}  // namespace

OpDef define_gated_conv2d() {
  return {.name = "gated_conv2d",
          .doc = "1x1 convolution of a gated image: y[n,m,i,j] = bias[m] + sum x[n,c,i,j] * gate[n,c] * weight[m,c].",
          .inputs = {{"x", "[N,C,H,W]"}, {"weight", "[M,C,1,1]"}, {"gate", "[N,C,1,1]"}, {"bias", "[M]", true}},
          .attrs = {},
          .traits = Trait::compute | Trait::wide,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .work =
              [](const Call& call) {
                return Work{.macs = elements(call.output().shape) * call.input(1).shape[1],
                            .flops = elements(call.input(0).shape)};
              },
          .keeps_batch = [](const Call&, Batched batched) { return batched[0] && !batched[1] && batched[2]; },
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"gated_conv2d(f32[2,5,3,4], f32[7,5,1,1], f32[2,5,1,1], f32[7])",
                      "gated_conv2d(f32[n,20,6,h], f32[3,20,1,1], f32[n,20,1,1], _)"}};
}

}  // namespace hetnn::ops
