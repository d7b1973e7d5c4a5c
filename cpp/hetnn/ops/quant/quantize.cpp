// quantize: reals as integers of a scale.
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  const ir::Type& x = node.input(0)->type();
  if (x.dtype != DType::f32) {
    ir::fail(node, "quantize_c1",
             text("the input must be f32; got ", ir::to_string(x), ". Cast it, or dequantize it first."));
  }
  if (!node.attrs().contains(ir::kQuantScale))
    ir::fail(node, "quantize_c2", text("attribute '", ir::kQuantScale, "' is missing."));
  return {{DType::i8, x.shape}};
}

}  // namespace

ir::OpDef define_quantize() {
  return {
      .name = "quantize",
      .doc = "Reals as i8: y = clamp(round(x / q_scale) + q_zero, -128, 127), to nearest even, NaN as 0.",
      .inputs = {{"x", "any shape"}},
      .attrs = {},
      .traits = ir::Trait::elementwise | ir::Trait::conversion,
      .torch = {},
      .onnx = {},
      .infer = infer,
      // Rounding to the result's type is the whole of it.
      .evaluate = [](const ir::Evaluation& e) { return std::vector<Tensor>{e.input(0)}; },
      .constraints = {},
      .kernel =
          [](const ir::Node& node) {
            const ir::Quant& quant = *node.output()->type().quant;
            return ir::KernelUse{.kernel = "quantize",
                                 .params = {{"scale", quant.scales[0]}, {"zero_point", Dim(quant.zero_point)}}};
          },
      .tolerance = 0,
      .samples = {"quantize(f32[2,3,5,7]) {q_scale = [0.05], q_zero = -3}", "quantize(f32[n,6]) {q_scale = [0.5]}"}};
}

}  // namespace hetnn::ops
