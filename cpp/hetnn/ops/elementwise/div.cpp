// div: y = a / b.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_div() {
  return elementwise(Function::div, {.doc = "Elementwise quotient with broadcasting: y = a / b.",
                                     .torch = {{"aten.div.Tensor", "a b"}, {"aten.div.Scalar", "a b"}},
                                     .onnx = {{"Div", 1, "a b"}},
                                     .samples = {"div(f32[2,3,5,7], f32[2,3,5,7])", "div(f32[2,3,4,4], f32[3,1,1])",
                                                 "div(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
