// dequantize: the reals that quantized integers stand for.
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  const ir::Type& x = node.input(0)->type();
  if (!x.quant) ir::fail(node, "dequantize_c1", text("the input must be quantized; got ", ir::to_string(x), "."));
  return {{DType::f32, x.shape}};
}

}  // namespace

ir::OpDef define_dequantize() {
  return {.name = "dequantize",
          .doc = "The reals that quantized integers stand for: y = scale * (x - zero point), of the input's type.",
          .inputs = {{"x", "any shape, i8 or i32"}},
          .attrs = {},
          .traits = ir::Trait::elementwise | ir::Trait::conversion,
          .torch = {},
          .onnx = {},
          .infer = infer,
          // Its input arrives as those reals.
          .evaluate = [](const ir::Evaluation& e) { return std::vector<Tensor>{e.input(0)}; },
          .constraints = {},
          .kernel =
              [](const ir::Node& node) {
                const ir::Quant& quant = *node.input(0)->type().quant;
                return ir::KernelUse{.kernel = "dequantize",
                                     .params = {{"scale", quant.scales[0]}, {"zero_point", Dim(quant.zero_point)}}};
              },
          .tolerance = 0,
          .samples = {"dequantize(i8{0.05:-3}[2,3,5,7])", "dequantize(i8{0.5}[n,6])"}};
}

}  // namespace hetnn::ops
