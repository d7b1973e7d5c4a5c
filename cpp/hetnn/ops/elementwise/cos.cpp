// cos: y = cos(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_cos() {
  return elementwise(Function::cos, {.doc = "Cosine: y = cos(x).",
                                     .torch = {{"aten.cos.default", "x"}},
                                     .onnx = {{"Cos", 1, "x"}},
                                     .samples = {"cos(f32[2,3,5,7])", "cos(f32[n,4])"}});
}

}  // namespace hetnn::ops
