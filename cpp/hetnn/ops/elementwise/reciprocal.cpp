// reciprocal: y = 1 / x.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_reciprocal() {
  return {.name = "reciprocal",
          .doc = "Reciprocal: y = 1 / x.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.reciprocal.default", "x"}},
          .onnx = {"Reciprocal"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return 1 / x; }); },
          .constraints = {},
          .kernel = unary_kernel("reciprocal"),
          .tolerance = 1e-6,
          .samples = {"reciprocal(f32[2,3,5,7])", "reciprocal(f32[n,4])"}};
}

}  // namespace hetnn::ops
