// floor_divide: y = floor_divide(a, b).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_floor_divide() {
  return elementwise(Function::floor_divide,
                     {.doc = "Quotient cut downwards to a whole number.",
                      .torch = {{"aten.floor_divide.default", "a b"}},
                      .onnx = {},
                      .samples = {"floor_divide(f32[2,3,5,7], f32[2,3,5,7])", "floor_divide(f32[2,3,4,4], f32[3,1,1])",
                                  "floor_divide(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
