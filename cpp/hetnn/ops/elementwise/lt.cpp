// lt: y = whether a is below b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_lt() {
  return {.name = "lt",
          .doc = "Comparison: y = whether a is below b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.lt.Tensor", "a b"}, {"aten.lt.Scalar", "a b"}},
          .onnx = {"Less"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a < b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("lt"),
          .tolerance = 0,
          .samples = {"lt(f32[2,3,5,7], f32[2,3,5,7])", "lt(f32[2,3,4,4], f32[3,1,1])", "lt(f32[n,1], f32[4])"}};
}

}  // namespace hetnn::ops
