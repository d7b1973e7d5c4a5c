// tan: y = tan(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_tan() {
  return elementwise(Function::tan, {.doc = "Tangent: y = tan(x).",
                                     .torch = {{"aten.tan.default", "x"}},
                                     .onnx = {{"Tan", 7, "x"}},
                                     .samples = {"tan(f32[2,3,5,7])", "tan(f32[n,4])"}});
}

}  // namespace hetnn::ops
