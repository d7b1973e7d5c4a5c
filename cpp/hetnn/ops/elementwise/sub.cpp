// sub: y = a - b.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_sub() {
  return elementwise(Function::sub, {.doc = "Elementwise difference with broadcasting: y = a - b.",
                                     .primitive = Primitive::subtract,
                                     .torch = {},
                                     .onnx = {{"Sub", 1, "a b"}},
                                     .samples = {"sub(f32[2,3,5,7], f32[2,3,5,7])", "sub(f32[2,3,4,4], f32[3,1,1])",
                                                 "sub(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
