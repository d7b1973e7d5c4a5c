// acosh: y = acosh(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_acosh() {
  return elementwise(Function::acosh, {.doc = "Inverse hyperbolic cosine, NaN below 1: y = acosh(x).",
                                       .torch = {{"aten.acosh.default", "x"}},
                                       .onnx = {{"Acosh", 9, "x"}},
                                       .samples = {"acosh(f32[2,3,5,7])", "acosh(f32[n,4])"}});
}

}  // namespace hetnn::ops
