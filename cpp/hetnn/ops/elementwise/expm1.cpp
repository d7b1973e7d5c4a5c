// expm1: y = expm1(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_expm1() {
  return elementwise(Function::expm1, {.doc = "e^x - 1 without cancellation near 0: y = expm1(x).",
                                       .torch = {{"aten.expm1.default", "x"}},
                                       .onnx = {},
                                       .samples = {"expm1(f32[2,3,5,7])", "expm1(f32[n,4])"}});
}

}  // namespace hetnn::ops
