// sin: y = sin(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_sin() {
  return elementwise(Function::sin, {.doc = "Sine: y = sin(x).",
                                     .torch = {{"aten.sin.default", "x"}},
                                     .onnx = {{"Sin", 1, "x"}},
                                     .samples = {"sin(f32[2,3,5,7])", "sin(f32[n,4])"}});
}

}  // namespace hetnn::ops
