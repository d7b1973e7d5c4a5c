// maximum: y = max(a, b).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_maximum() {
  return {
      .name = "maximum",
      .doc = "Elementwise maximum; NaN wins: y = max(a, b).",
      .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
      .attrs = {},
      .traits = Trait::elementwise | Trait::commutative | Trait::compute,
      .torch = {{"aten.maximum.default", "a b"}},
      .onnx = {"Max"},
      .infer = broadcast_inputs,
      .evaluate =
          [](const Evaluation& e) { return map_binary(e, [](auto a, auto b) { return a != a || a > b ? a : b; }); },
      .constraints = {},
      .kernel = binary_kernel("max", "max"),
      .tolerance = 0,
      .samples = {"maximum(f32[2,3,5,7], f32[2,3,5,7])", "maximum(f32[2,3,4,4], f32[3,1,1])",
                  "maximum(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
