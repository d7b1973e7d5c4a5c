// scaled_conv2d: a 1x1 convolution whose input is first scaled a channel, as gates of squeeze and excitation and norms
// before a convolution do.
#include <memory>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/product.h"

namespace hetnn::ops {
namespace {

// One value a channel, of each image or of all.
bool is_of_channels(const Type& value, const Type& x) {
  return value.dtype == x.dtype &&
         (value.shape == Shape{x.shape[0], x.shape[1], 1, 1} || value.shape == Shape{1, x.shape[1], 1, 1});
}

// x [N,C,H,W], weight [M,C,1,1], scale [N or 1,C,1,1], bias [M], shift [N or 1,C,1,1] -> y [N,M,H,W].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1), &scale = call.input(2);
  const Type* shift = call.has(4) ? &call.input(4) : nullptr;
  const bool fits = x.shape.size() == 4 && w.shape.size() == 4 && is_static(w.shape) &&
                    w.shape == Shape{w.shape[0], x.shape[1], 1, 1} && x.dtype == w.dtype && is_of_channels(scale, x) &&
                    (!shift || is_of_channels(*shift, x));
  if (!fits) {
    fail(call, "scaled_conv2d_c1",
         text("input, weight, scale and shift must be [N,C,H,W], [M,C,1,1], and twice [N,C,1,1] or [1,C,1,1], of one "
              "type; got ",
              to_string(x), ", ", to_string(w), ", ", to_string(scale), " and ", shift ? to_string(*shift) : "none",
              ". Check the shapes."));
  }
  check_parameters(call, 3, 4, {w.shape[0]}, "scaled_conv2d_c2");
  return {{x.dtype, {x.shape[0], w.shape[0], x.shape[2], x.shape[3]}}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t channels = x.shape[1], filters = y.shape[1], pixels = x.shape[2] * x.shape[3];
  const bool clips = e.call.flag("relu");
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto values_of = [&](size_t input) { return e.has(input) ? e.input(input).values<T>().data() : nullptr; };
    const T *in = values_of(0), *weight = values_of(1), *scale = values_of(2), *bias = values_of(3),
            *shift = values_of(4);
    const auto row_of = [&](size_t input, int64_t image) {
      return e.input(input).shape[0] == 1 ? 0 : image * channels;
    };
    const auto scaled = std::make_unique<T[]>(static_cast<size_t>(channels * pixels));
    for (int64_t n = 0; n < x.shape[0]; ++n) {
      for (int64_t k = 0; k < channels * pixels; ++k, ++in) {
        const int64_t c = k / pixels;  // every operation is rounded
        T value = static_cast<T>(static_cast<Sum<T>>(*in) * static_cast<Sum<T>>(scale[row_of(2, n) + c]));
        if (shift) value = static_cast<T>(static_cast<Sum<T>>(value) + static_cast<Sum<T>>(shift[row_of(4, n) + c]));
        scaled[static_cast<size_t>(k)] = clips && value < zero ? zero : value;
      }
      multiply<T>(filters, pixels, channels, {weight, channels, 1}, {scaled.get(), pixels, 1}, {bias, 1, 0},
                  y.values<T>() + n * filters * pixels);
    }
  });
}

// Values of all images stay as they are.
bool keeps_images(const Call& call, Batched batched) {
  const auto fits = [&](size_t k) { return !call.has(k) || batched[k] || call.input(k).shape[0] == Dim(1); };
  return batched[0] && !batched[1] && fits(2) && !(call.has(3) && batched[3]) && fits(4);
}

}  // namespace

OpDef define_scaled_conv2d() {
  return {.name = "scaled_conv2d",
          .doc =
              "1x1 convolution of an image scaled and shifted a channel: y[n,m,i,j] = bias[m] + sum f(x[n,c,i,j] * "
              "scale[n,c] + shift[n,c]) * weight[m,c], f relu where asked.",
          .inputs = {{"x", "[N,C,H,W]"},
                     {"weight", "[M,C,1,1]"},
                     {"scale", "[N or 1,C,1,1]"},
                     {"bias", "[M]", true},
                     {"shift", "[N or 1,C,1,1]", true}},
          .attrs = {{"relu", AttrKind::boolean, false, "what is below zero counts as zero"}},
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
          .keeps_batch = keeps_images,
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"scaled_conv2d(f32[2,5,3,4], f32[7,5,1,1], f32[2,5,1,1], f32[7])",
                      "scaled_conv2d(f32[n,20,6,h], f32[3,20,1,1], f32[n,20,1,1], _)",
                      "scaled_conv2d(f32[2,6,3,4], f32[5,6,1,1], f32[1,6,1,1], f32[5], f32[1,6,1,1]) {relu = true}"}};
}

}  // namespace hetnn::ops
