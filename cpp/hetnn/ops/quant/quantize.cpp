// quantize: reals as integers of a scale.
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.dtype != DType::f32) {
    fail(call, "quantize_c1", text("the input must be f32; got ", to_string(x), ". Cast it, or dequantize it first."));
  }
  if (!call.attrs.contains(kQuantScale)) fail(call, "quantize_c2", text("attribute '", kQuantScale, "' is missing."));
  return {{DType::i8, x.shape}};
}

}  // namespace

OpDef define_quantize() {
  return {
      .name = "quantize",
      .doc = "Reals as i8: y = clamp(round(x / q_scale) + q_zero, -128, 127), to nearest even, NaN as 0.",
      .inputs = {{"x", "any shape"}},
      .attrs = {},
      .traits = Trait::elementwise | Trait::conversion,
      .torch = {},
      .onnx = {},
      .infer = infer,
      // Rounding to the result's type is the whole of it.
      .meaning = [](const Evaluation& e) { copy(e.input(0), e.output()); },
      .constraints = {},
      .tolerance = 0,
      .samples = {"quantize(f32[2,3,5,7]) {q_scale = [0.05], q_zero = -3}", "quantize(f32[n,6]) {q_scale = [0.5]}"}};
}

}  // namespace hetnn::ops
