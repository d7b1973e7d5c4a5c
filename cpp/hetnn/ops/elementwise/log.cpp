// log: y = log(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_log() {
  return elementwise(Function::log, {.doc = "Natural logarithm: y = log(x).",
                                     .torch = {{"aten.log.default", "x"}},
                                     .onnx = {{"Log", 1, "x"}},
                                     .samples = {"log(f32[2,3,5,7])", "log(f32[n,4])"}});
}

}  // namespace hetnn::ops
