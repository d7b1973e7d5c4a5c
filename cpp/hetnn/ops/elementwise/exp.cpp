// exp: y = exp(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_exp() {
  return elementwise(Function::exp, {.doc = "Exponential: y = exp(x).",
                                     .torch = {{"aten.exp.default", "x"}},
                                     .onnx = {{"Exp", 1, "x"}},
                                     .samples = {"exp(f32[2,3,5,7])", "exp(f32[n,4])"}});
}

}  // namespace hetnn::ops
