// sqrt: y = sqrt(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_sqrt() {
  return elementwise(Function::sqrt, {.doc = "Square root: y = sqrt(x).",
                                      .torch = {{"aten.sqrt.default", "x"}},
                                      .onnx = {{"Sqrt", 1, "x"}},
                                      .samples = {"sqrt(f32[2,3,5,7])", "sqrt(f32[n,4])"}});
}

}  // namespace hetnn::ops
