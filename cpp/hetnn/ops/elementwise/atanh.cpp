// atanh: y = atanh(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_atanh() {
  return elementwise(Function::atanh, {.doc = "Inverse hyperbolic tangent, NaN outside [-1,1]: y = atanh(x).",
                                       .torch = {{"aten.atanh.default", "x"}},
                                       .onnx = {{"Atanh", 9, "x"}},
                                       .samples = {"atanh(f32[2,3,5,7])", "atanh(f32[n,4])"}});
}

}  // namespace hetnn::ops
