// hardswish: y = x * min(max(x + 3, 0), 6) / 6.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_hardswish() {
  return elementwise(Function::hardswish, {.doc = "Piecewise linear swish: y = x * min(max(x + 3, 0), 6) / 6.",
                                           .torch = {{"aten.hardswish.default", "x"}},
                                           .onnx = {{"HardSwish", 1, "x"}},
                                           .samples = {"hardswish(f32[2,3,5,7])", "hardswish(f32[n,4])"}});
}

}  // namespace hetnn::ops
