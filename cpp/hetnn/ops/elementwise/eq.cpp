// eq: y = whether a equals b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_eq() {
  return {.name = "eq",
          .doc = "Comparison: y = whether a equals b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.eq.Tensor", "a b"}, {"aten.eq.Scalar", "a b"}},
          .onnx = {"Equal"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a == b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("eq"),
          .tolerance = 0,
          .samples = {"eq(f32[2,3,5,7], f32[2,3,5,7])", "eq(f32[2,3,4,4], f32[3,1,1])", "eq(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
