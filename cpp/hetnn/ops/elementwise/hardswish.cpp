// hardswish: y = x * min(max(x + 3, 0), 6) / 6.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_hardswish() {
  return {.name = "hardswish",
          .doc = "Piecewise linear swish: y = x * min(max(x + 3, 0), 6) / 6.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.hardswish.default", "x"}},
          .onnx = {"HardSwish"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                return map_real(e, [=](double x) {
                  const double t = x + 3;
                  return x * (t < 0 ? 0 : t > 6 ? 6 : t) / 6;
                });
              },
          .constraints = {},
          .kernel = unary_kernel("hardswish"),
          .tolerance = 1e-6,
          .samples = {"hardswish(f32[2,3,5,7])", "hardswish(f32[n,4])"}};
}

}  // namespace hetnn::ops
