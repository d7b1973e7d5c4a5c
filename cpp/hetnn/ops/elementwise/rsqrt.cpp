// rsqrt: y = 1 / sqrt(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_rsqrt() {
  return {.name = "rsqrt",
          .doc = "Reciprocal square root: y = 1 / sqrt(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.rsqrt.default", "x"}},
          .onnx = {},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return 1 / std::sqrt(x); }); },
          .constraints = {},
          .kernel = unary_kernel("rsqrt"),
          .tolerance = 1e-5,
          .samples = {"rsqrt(f32[2,3,5,7])", "rsqrt(f32[n,4])"}};
}

}  // namespace hetnn::ops
