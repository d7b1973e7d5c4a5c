// ge: y = whether a is at least b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_ge() {
  return {.name = "ge",
          .doc = "Comparison: y = whether a is at least b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.ge.Tensor", "a b"}, {"aten.ge.Scalar", "a b"}},
          .onnx = {"GreaterOrEqual"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a >= b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("ge"),
          .tolerance = 0,
          .samples = {"ge(f32[2,3,5,7], f32[2,3,5,7])", "ge(f32[2,3,4,4], f32[3,1,1])", "ge(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
