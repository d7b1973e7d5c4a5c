// relu: y = max(x, 0).
#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_relu() {
  return {.name = "relu",
          .doc = "Rectified linear unit: y = max(x, 0).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.relu.default", "x"}},
          .onnx = {"Relu"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                // Written so that NaN stays NaN and -0 becomes 0.
                return map_unary(e, [](auto x) { return x <= decltype(x)(0) ? decltype(x)(0) : x; });
              },
          .constraints = {},
          .kernel = unary_kernel("relu"),
          .tolerance = 0,
          .samples = {"relu(f32[2,3,5,7])", "relu(f32[n,4])", "relu(i32[3])"}};
}

}  // namespace hetnn::ops
