// ceil: y = ceil(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_ceil() {
  return elementwise(Function::ceil, {.doc = "Smallest integer not below: y = ceil(x).",
                                      .torch = {{"aten.ceil.default", "x"}},
                                      .onnx = {{"Ceil", 1, "x"}},
                                      .samples = {"ceil(f32[2,3,5,7])", "ceil(f32[n,4])"}});
}

}  // namespace hetnn::ops
