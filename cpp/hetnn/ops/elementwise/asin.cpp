// asin: y = asin(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_asin() {
  return elementwise(Function::asin, {.doc = "Inverse sine, NaN outside [-1,1]: y = asin(x).",
                                      .torch = {{"aten.asin.default", "x"}},
                                      .onnx = {{"Asin", 7, "x"}},
                                      .samples = {"asin(f32[2,3,5,7])", "asin(f32[n,4])"}});
}

}  // namespace hetnn::ops
