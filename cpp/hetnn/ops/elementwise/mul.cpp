// mul: y = a * b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_mul() {
  return {.name = "mul",
          .doc = "Elementwise product with broadcasting: y = a * b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = Trait::elementwise | Trait::commutative | Trait::compute,
          .torch = {{"aten.mul.Tensor", "a b"}, {"aten.mul.Scalar", "a b"}},
          .onnx = {"Mul"},
          .infer = broadcast_inputs,
          .evaluate = [](const Evaluation& e) { return map_binary(e, [](auto a, auto b) { return a * b; }); },
          .constraints = {},
          .kernel = binary_kernel("mul", "mul"),
          .tolerance = 1e-6,
          .samples = {"mul(f32[2,3,5,7], f32[2,3,5,7])", "mul(f32[2,3,4,4], f32[3,1,1])", "mul(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
