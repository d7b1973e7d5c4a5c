// le: y = whether a is at most b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_le() {
  return {.name = "le",
          .doc = "Comparison: y = whether a is at most b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.le.Tensor", "a b"}, {"aten.le.Scalar", "a b"}},
          .onnx = {"LessOrEqual"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a <= b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("le"),
          .tolerance = 0,
          .samples = {"le(f32[2,3,5,7], f32[2,3,5,7])", "le(f32[2,3,4,4], f32[3,1,1])", "le(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
