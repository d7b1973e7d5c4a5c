// minimum: y = min(a, b).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_minimum() {
  return {
      .name = "minimum",
      .doc = "Elementwise minimum; NaN wins: y = min(a, b).",
      .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
      .attrs = {},
      .traits = Trait::elementwise | Trait::commutative | Trait::compute,
      .torch = {{"aten.minimum.default", "a b"}},
      .onnx = {"Min"},
      .infer = broadcast_inputs,
      .evaluate =
          [](const Evaluation& e) { return map_binary(e, [](auto a, auto b) { return a != a || a < b ? a : b; }); },
      .constraints = {},
      .kernel = binary_kernel("min", "min"),
      .tolerance = 0,
      .samples = {"minimum(f32[2,3,5,7], f32[2,3,5,7])", "minimum(f32[2,3,4,4], f32[3,1,1])",
                  "minimum(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
