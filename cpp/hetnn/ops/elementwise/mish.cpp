// mish: y = x * tanh(log(1 + exp(x))).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_mish() {
  return elementwise(Function::mish, {.doc = "Self-regularised activation: y = x * tanh(log(1 + exp(x))).",
                                      .torch = {{"aten.mish.default", "x"}},
                                      .onnx = {{"Mish", 1, "x"}},
                                      .samples = {"mish(f32[2,3,5,7])", "mish(f32[n,4])"}});
}

}  // namespace hetnn::ops
