// abs: y = |x|.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_abs() {
  return elementwise(Function::abs, {.doc = "Absolute value: y = |x|.",
                                     .torch = {{"aten.abs.default", "x"}},
                                     .onnx = {{"Abs", 1, "x"}},
                                     .samples = {"abs(f32[2,3,5,7])", "abs(f32[n,4])"}});
}

}  // namespace hetnn::ops
