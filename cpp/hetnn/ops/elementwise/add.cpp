// add: y = a + b.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_add() {
  return elementwise(Function::add, {.doc = "Elementwise sum with broadcasting: y = a + b.",
                                     .traits = static_cast<uint32_t>(Trait::commutative),
                                     .primitive = Primitive::add,
                                     .torch = {},
                                     .onnx = {{"Add", 1, "a b"}},
                                     .samples = {"add(f32[2,3,5,7], f32[2,3,5,7])", "add(f32[2,3,4,4], f32[3,1,1])",
                                                 "add(i64[n,1], i64[4])"}});
}

}  // namespace hetnn::ops
