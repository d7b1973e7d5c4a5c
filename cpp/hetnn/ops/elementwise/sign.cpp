// sign: y = -1, 0 or 1.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_sign() {
  return {.name = "sign",
          .doc = "Sign: y = -1, 0 or 1.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.sign.default", "x"}},
          .onnx = {"Sign"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                return map_real(e, [=](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; });
              },
          .constraints = {},
          .kernel = unary_kernel("sign"),
          .tolerance = 0,
          .samples = {"sign(f32[2,3,5,7])", "sign(f32[n,4])"}};
}

}  // namespace hetnn::ops
