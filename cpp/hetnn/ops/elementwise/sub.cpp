// sub: y = a - b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_sub() {
  return {.name = "sub",
          .doc = "Elementwise difference with broadcasting: y = a - b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = Trait::elementwise | Trait::compute,
          .torch = {},
          .onnx = {"Sub"},
          .infer = broadcast_inputs,
          .evaluate = [](const Evaluation& e) { return map_binary(e, [](auto a, auto b) { return a - b; }); },
          .constraints = {},
          .kernel = binary_kernel("sub", "sub"),
          .tolerance = 1e-6,
          .samples = {"sub(f32[2,3,5,7], f32[2,3,5,7])", "sub(f32[2,3,4,4], f32[3,1,1])", "sub(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
