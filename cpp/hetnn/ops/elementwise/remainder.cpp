// remainder: y = remainder(a, b).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_remainder() {
  return elementwise(Function::remainder,
                     {.doc = "What is left of a after taking away b as often as goes, of the sign of b.",
                      .torch = {{"aten.remainder.Tensor", "a b"},
                                {"aten.remainder.Scalar", "a b"},
                                {"aten.remainder.Scalar_Tensor", "a b"}},
                      .onnx = {},
                      .samples = {"remainder(f32[2,3,5,7], f32[2,3,5,7])", "remainder(f32[2,3,4,4], f32[3,1,1])",
                                  "remainder(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
