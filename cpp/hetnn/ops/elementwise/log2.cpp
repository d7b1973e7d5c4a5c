// log2: y = log2(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_log2() {
  return elementwise(Function::log2, {.doc = "Logarithm to base 2: y = log2(x).",
                                      .torch = {{"aten.log2.default", "x"}},
                                      .onnx = {},
                                      .samples = {"log2(f32[2,3,5,7])", "log2(f32[n,4])"}});
}

}  // namespace hetnn::ops
