// pow: y = a ^ b.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_pow() {
  return elementwise(
      Function::pow,
      {.doc = "Elementwise power: y = a ^ b.",
       .torch = {{"aten.pow.Tensor_Tensor", "a b"}, {"aten.pow.Tensor_Scalar", ""}, {"aten.pow.Scalar", "a b"}},
       .onnx = {{"Pow", 1, "a b"}},
       .samples = {"pow(f32[2,3,5,7], f32[2,3,5,7])", "pow(f32[2,3,4,4], f32[3,1,1])", "pow(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
