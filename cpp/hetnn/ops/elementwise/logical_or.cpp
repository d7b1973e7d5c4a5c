// logical_or: y = a || b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_logical_or() {
  return {.name = "logical_or",
          .doc = "Logical operation: y = a || b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.logical_or.default", "a b"}},
          .onnx = {"Or"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return a || b; }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("logical_or"),
          .tolerance = 0,
          .samples = {"logical_or(bool[2,3], bool[3])"}};
}

}  // namespace hetnn::ops
