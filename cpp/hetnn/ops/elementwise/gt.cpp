// gt: y = whether a is above b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_gt() {
  return {.name = "gt",
          .doc = "Comparison: y = whether a is above b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.gt.Tensor", "a b"}, {"aten.gt.Scalar", "a b"}},
          .onnx = {"Greater"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a > b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("gt"),
          .tolerance = 0,
          .samples = {"gt(f32[2,3,5,7], f32[2,3,5,7])", "gt(f32[2,3,4,4], f32[3,1,1])", "gt(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
