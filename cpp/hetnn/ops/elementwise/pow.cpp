// pow: y = a ^ b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_pow() {
  return {
      .name = "pow",
      .doc = "Elementwise power: y = a ^ b.",
      .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
      .attrs = {},
      .traits = Trait::elementwise | Trait::compute,
      .torch = {{"aten.pow.Tensor_Tensor", "a b"}, {"aten.pow.Tensor_Scalar", "a b"}, {"aten.pow.Scalar", "a b"}},
      .onnx = {"Pow"},
      .infer = broadcast_inputs,
      .evaluate = [](const Evaluation& e) { return map_binary(e, [](auto a, auto b) { return std::pow(a, b); }); },
      .constraints = {},
      .kernel = binary_kernel("pow"),
      .tolerance = 1e-5,
      .samples = {"pow(f32[2,3,5,7], f32[2,3,5,7])", "pow(f32[2,3,4,4], f32[3,1,1])", "pow(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
