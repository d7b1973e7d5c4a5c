// erf: y = erf(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_erf() {
  return elementwise(Function::erf, {.doc = "Error function: y = erf(x).",
                                     .torch = {{"aten.erf.default", "x"}},
                                     .onnx = {{"Erf", 1, "x"}},
                                     .samples = {"erf(f32[2,3,5,7])", "erf(f32[n,4])"}});
}

}  // namespace hetnn::ops
