// sin: y = sin(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_sin() {
  return {.name = "sin",
          .doc = "Sine: y = sin(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.sin.default", "x"}},
          .onnx = {"Sin"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::sin(x); }); },
          .constraints = {},
          .kernel = unary_kernel("sin"),
          .tolerance = 1e-5,
          .samples = {"sin(f32[2,3,5,7])", "sin(f32[n,4])"}};
}

}  // namespace hetnn::ops
