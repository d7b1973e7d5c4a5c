// quantize: reals, or integers of another scale, as integers of a scale.
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.dtype != DType::f32 && !x.quant) {
    fail(call, "quantize_c1",
         text("the input must be f32 or quantized; got ", to_string(x), ". Cast it, or dequantize it first."));
  }
  if (!call.attrs.contains(kQuantScale)) fail(call, "quantize_c2", text("attribute '", kQuantScale, "' is missing."));
  const DType to = call.dtype("to");
  if (!may_be_quantized(to))
    fail(call, "quantize_c3", text("no integers of ", dtype_name(to), " stand for reals. Use i8, u8 or i16."));
  return {{to, x.shape}};
}

}  // namespace

OpDef define_quantize() {
  return {
      .name = "quantize",
      .doc = "Reals as integers: y = clamp(round(x / q_scale) + q_zero) within the type, to nearest even, NaN as 0.",
      .inputs = {{"x", "any shape"}},
      .attrs = {{"to", AttrKind::dtype, DType::i8, "the type of the integers"}},
      .traits = Trait::elementwise | Trait::conversion,
      .torch = {},
      .onnx = {},
      .infer = infer,
      // Rounding to the result's type is the whole of it.
      .meaning = [](const Evaluation& e) { copy(e.input(0), e.output()); },
      .constraints = {},
      .tolerance = 0,
      .samples = {"quantize(f32[2,3,5,7]) {q_scale = [0.05], q_zero = -3}", "quantize(f32[n,6]) {q_scale = [0.5]}",
                  "quantize(f32[2,6]) {to = i16, q_scale = [0.001]}",
                  "quantize(i32{0.001}[2,6]) {q_scale = [0.05], q_zero = 3, q_rounding = double}"}};
}

}  // namespace hetnn::ops
