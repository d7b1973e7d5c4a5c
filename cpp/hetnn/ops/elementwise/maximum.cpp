// maximum: y = max(a, b).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_maximum() {
  return elementwise(Function::maximum,
                     {.doc = "Elementwise maximum; NaN wins: y = max(a, b).",
                      .traits = static_cast<uint32_t>(Trait::commutative),
                      .primitive = Primitive::maximum,
                      .torch = {{"aten.maximum.default", "a b"}},
                      .onnx = {"Max"},
                      .samples = {"maximum(f32[2,3,5,7], f32[2,3,5,7])", "maximum(f32[2,3,4,4], f32[3,1,1])",
                                  "maximum(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
