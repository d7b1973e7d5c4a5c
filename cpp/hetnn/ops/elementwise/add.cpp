// add: y = a + b.
#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_add() {
  return {.name = "add",
          .doc = "Elementwise sum with broadcasting: y = a + b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = Trait::elementwise | Trait::commutative | Trait::compute,
          .torch = {},
          .onnx = {"Add"},
          .infer = broadcast_inputs,
          .evaluate = [](const Evaluation& e) { return map_binary(e, [](auto a, auto b) { return a + b; }); },
          .constraints = {},
          .kernel = binary_kernel("add", "add"),
          .tolerance = 1e-6,
          .samples = {"add(f32[2,3,5,7], f32[2,3,5,7])", "add(f32[2,3,4,4], f32[3,1,1])", "add(i64[n,1], i64[4])"}};
}

}  // namespace hetnn::ops
