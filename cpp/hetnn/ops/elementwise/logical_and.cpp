// logical_and: y = a && b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_logical_and() {
  return {.name = "logical_and",
          .doc = "Logical operation: y = a && b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.logical_and.default", "a b"}},
          .onnx = {"And"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a && b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("logical_and"),
          .tolerance = 0,
          .samples = {"logical_and(bool[2,3], bool[3])"}};
}

}  // namespace hetnn::ops
