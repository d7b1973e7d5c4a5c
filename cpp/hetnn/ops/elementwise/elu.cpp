// elu: y = x where x > 0, else alpha * (exp(x) - 1).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_elu() {
  return elementwise(Function::elu, {.doc = "Exponential linear unit: y = x where x > 0, else alpha * (exp(x) - 1).",
                                     .attrs = {{"alpha", AttrKind::real, 1.0, "limit below zero, negated"}},
                                     .onnx = {{"Elu", 1, "x alpha"}},
                                     .samples = {"elu(f32[2,3,5,7])", "elu(f32[n,4])"}});
}

}  // namespace hetnn::ops
