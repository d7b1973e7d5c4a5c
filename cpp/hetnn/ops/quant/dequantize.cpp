// dequantize: the reals that quantized integers stand for.
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (!x.quant) fail(call, "dequantize_c1", text("the input must be quantized; got ", to_string(x), "."));
  return {{DType::f32, x.shape}};
}

}  // namespace

OpDef define_dequantize() {
  return {.name = "dequantize",
          .doc = "The reals that quantized integers stand for: y = scale * (x - zero point), of the input's type.",
          .inputs = {{"x", "any shape, quantized"}},
          .attrs = {},
          .traits = Trait::elementwise | Trait::conversion,
          .torch = {},
          .onnx = {},
          .infer = infer,
          // Its input arrives as those reals.
          .meaning = [](const Evaluation& e) { copy(e.input(0), e.output()); },
          .constraints = {},
          .tolerance = 0,
          .samples = {"dequantize(i8{0.05:-3}[2,3,5,7])", "dequantize(i8{0.5}[n,6])",
                      "dequantize(u8{0.1,0.2:3,250@1}[3,2])", "dequantize(i16{0.001}[2,6])"}};
}

}  // namespace hetnn::ops
