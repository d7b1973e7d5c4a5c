// log10: y = log10(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_log10() {
  return elementwise(Function::log10, {.doc = "Logarithm to base 10: y = log10(x).",
                                       .torch = {{"aten.log10.default", "x"}},
                                       .onnx = {},
                                       .samples = {"log10(f32[2,3,5,7])", "log10(f32[n,4])"}});
}

}  // namespace hetnn::ops
