// tanh: y = tanh(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_tanh() {
  return elementwise(Function::tanh, {.doc = "Hyperbolic tangent: y = tanh(x).",
                                      .torch = {{"aten.tanh.default", "x"}},
                                      .onnx = {{"Tanh", 1, "x"}},
                                      .samples = {"tanh(f32[2,3,5,7])", "tanh(f32[n,4])"}});
}

}  // namespace hetnn::ops
