// mul: y = a * b.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_mul() {
  return elementwise(Function::mul, {.doc = "Elementwise product with broadcasting: y = a * b.",
                                     .traits = static_cast<uint32_t>(Trait::commutative),
                                     .primitive = Primitive::multiply,
                                     .torch = {{"aten.mul.Tensor", "a b"}, {"aten.mul.Scalar", "a b"}},
                                     .onnx = {{"Mul", 1, "a b"}},
                                     .samples = {"mul(f32[2,3,5,7], f32[2,3,5,7])", "mul(f32[2,3,4,4], f32[3,1,1])",
                                                 "mul(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
