// log1p: y = log1p(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_log1p() {
  return elementwise(Function::log1p, {.doc = "log(1 + x) without cancellation near 0: y = log1p(x).",
                                       .torch = {{"aten.log1p.default", "x"}},
                                       .onnx = {},
                                       .samples = {"log1p(f32[2,3,5,7])", "log1p(f32[n,4])"}});
}

}  // namespace hetnn::ops
