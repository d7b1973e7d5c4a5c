// cos: y = cos(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_cos() {
  return {.name = "cos",
          .doc = "Cosine: y = cos(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.cos.default", "x"}},
          .onnx = {"Cos"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::cos(x); }); },
          .constraints = {},
          .kernel = unary_kernel("cos"),
          .tolerance = 1e-5,
          .samples = {"cos(f32[2,3,5,7])", "cos(f32[n,4])"}};
}

}  // namespace hetnn::ops
