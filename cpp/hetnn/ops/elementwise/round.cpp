// round: y = round(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_round() {
  return elementwise(Function::round, {.doc = "Nearest integer, halves to even: y = round(x).",
                                       .torch = {{"aten.round.default", "x"}},
                                       .onnx = {{"Round", 1, "x"}},
                                       .samples = {"round(f32[2,3,5,7])", "round(f32[n,4])"}});
}

}  // namespace hetnn::ops
