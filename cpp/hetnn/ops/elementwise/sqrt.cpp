// sqrt: y = sqrt(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_sqrt() {
  return {.name = "sqrt",
          .doc = "Square root: y = sqrt(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.sqrt.default", "x"}},
          .onnx = {"Sqrt"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::sqrt(x); }); },
          .constraints = {},
          .kernel = unary_kernel("sqrt"),
          .tolerance = 1e-6,
          .samples = {"sqrt(f32[2,3,5,7])", "sqrt(f32[n,4])"}};
}

}  // namespace hetnn::ops
