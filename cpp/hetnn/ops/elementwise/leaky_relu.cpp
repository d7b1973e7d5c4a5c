// leaky_relu: y = x where x > 0, else negative_slope * x.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_leaky_relu() {
  return elementwise(Function::leaky_relu,
                     {.doc = "Leaky rectified linear unit: y = x where x > 0, else negative_slope * x.",
                      .attrs = {{"negative_slope", AttrKind::real, 0.01, "slope below zero"}},
                      .torch = {{"aten.leaky_relu.default", "x negative_slope"}},
                      .onnx = {{"LeakyRelu", 1, "x negative_slope:alpha"}},
                      .samples = {"leaky_relu(f32[2,3,5,7])", "leaky_relu(f32[n,4])"}});
}

}  // namespace hetnn::ops
