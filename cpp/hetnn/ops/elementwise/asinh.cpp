// asinh: y = asinh(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_asinh() {
  return elementwise(Function::asinh, {.doc = "Inverse hyperbolic sine: y = asinh(x).",
                                       .torch = {{"aten.asinh.default", "x"}},
                                       .onnx = {{"Asinh", 9, "x"}},
                                       .samples = {"asinh(f32[2,3,5,7])", "asinh(f32[n,4])"}});
}

}  // namespace hetnn::ops
