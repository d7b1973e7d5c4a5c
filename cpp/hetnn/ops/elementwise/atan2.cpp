// atan2: y = atan2(a, b).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_atan2() {
  return elementwise(Function::atan2, {.doc = "Angle of the point (b, a), in (-pi, pi].",
                                       .torch = {{"aten.atan2.default", "a b"}},
                                       .onnx = {},
                                       .samples = {"atan2(f32[2,3,5,7], f32[2,3,5,7])",
                                                   "atan2(f32[2,3,4,4], f32[3,1,1])", "atan2(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
