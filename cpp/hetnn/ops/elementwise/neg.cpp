// neg: y = -x.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_neg() {
  return elementwise(Function::neg, {.doc = "Negation: y = -x.",
                                     .torch = {{"aten.neg.default", "x"}},
                                     .onnx = {{"Neg", 1, "x"}},
                                     .samples = {"neg(f32[2,3,5,7])", "neg(f32[n,4])"}});
}

}  // namespace hetnn::ops
