// acos: y = acos(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_acos() {
  return elementwise(Function::acos, {.doc = "Inverse cosine, NaN outside [-1,1]: y = acos(x).",
                                      .torch = {{"aten.acos.default", "x"}},
                                      .onnx = {{"Acos", 7, "x"}},
                                      .samples = {"acos(f32[2,3,5,7])", "acos(f32[n,4])"}});
}

}  // namespace hetnn::ops
