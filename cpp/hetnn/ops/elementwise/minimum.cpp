// minimum: y = min(a, b).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_minimum() {
  return elementwise(Function::minimum,
                     {.doc = "Elementwise minimum; NaN wins: y = min(a, b).",
                      .traits = static_cast<uint32_t>(Trait::commutative),
                      .primitive = Primitive::minimum,
                      .torch = {{"aten.minimum.default", "a b"}},
                      .onnx = {"Min"},
                      .samples = {"minimum(f32[2,3,5,7], f32[2,3,5,7])", "minimum(f32[2,3,4,4], f32[3,1,1])",
                                  "minimum(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
