// reciprocal: y = 1 / x.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_reciprocal() {
  return elementwise(Function::reciprocal, {.doc = "Reciprocal: y = 1 / x.",
                                            .torch = {{"aten.reciprocal.default", "x"}},
                                            .onnx = {{"Reciprocal", 1, "x"}},
                                            .samples = {"reciprocal(f32[2,3,5,7])", "reciprocal(f32[n,4])"}});
}

}  // namespace hetnn::ops
