// sinh: y = sinh(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_sinh() {
  return elementwise(Function::sinh, {.doc = "Hyperbolic sine: y = sinh(x).",
                                      .torch = {{"aten.sinh.default", "x"}},
                                      .onnx = {{"Sinh", 9, "x"}},
                                      .samples = {"sinh(f32[2,3,5,7])", "sinh(f32[n,4])"}});
}

}  // namespace hetnn::ops
