// ne: y = whether a differs from b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_ne() {
  return {.name = "ne",
          .doc = "Comparison: y = whether a differs from b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.ne.Tensor", "a b"}, {"aten.ne.Scalar", "a b"}},
          .onnx = {},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a != b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("ne"),
          .tolerance = 0,
          .samples = {"ne(f32[2,3,5,7], f32[2,3,5,7])", "ne(f32[2,3,4,4], f32[3,1,1])", "ne(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
