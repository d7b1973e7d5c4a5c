// logical_xor: y = a != b.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_logical_xor() {
  return {.name = "logical_xor",
          .doc = "Logical operation: y = a != b.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.logical_xor.default", "a b"}},
          .onnx = {"Xor"},
          .infer = compare_inputs,
          .evaluate =
              [](const Evaluation& e) {
                return map_binary(
                    e, [](auto a, auto b) { return static_cast<bool>(a) != static_cast<bool>(b); }, true);
              },
          .constraints = {},
          .kernel = binary_kernel("logical_xor"),
          .tolerance = 0,
          .samples = {"logical_xor(bool[2,3], bool[3])"}};
}

}  // namespace hetnn::ops
