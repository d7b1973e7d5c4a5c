// trunc: y = trunc(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_trunc() {
  return elementwise(Function::trunc, {.doc = "Nearest integer towards 0: y = trunc(x).",
                                       .torch = {{"aten.trunc.default", "x"}},
                                       .onnx = {},
                                       .samples = {"trunc(f32[2,3,5,7])", "trunc(f32[n,4])"}});
}

}  // namespace hetnn::ops
