// cosh: y = cosh(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_cosh() {
  return elementwise(Function::cosh, {.doc = "Hyperbolic cosine: y = cosh(x).",
                                      .torch = {{"aten.cosh.default", "x"}},
                                      .onnx = {{"Cosh", 9, "x"}},
                                      .samples = {"cosh(f32[2,3,5,7])", "cosh(f32[n,4])"}});
}

}  // namespace hetnn::ops
