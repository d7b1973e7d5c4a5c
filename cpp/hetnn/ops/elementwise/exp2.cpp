// exp2: y = exp2(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_exp2() {
  return elementwise(Function::exp2, {.doc = "Power of 2: y = exp2(x).",
                                      .torch = {{"aten.exp2.default", "x"}},
                                      .onnx = {},
                                      .samples = {"exp2(f32[2,3,5,7])", "exp2(f32[n,4])"}});
}

}  // namespace hetnn::ops
