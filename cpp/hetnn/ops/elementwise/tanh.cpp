// tanh: y = tanh(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_tanh() {
  return {.name = "tanh",
          .doc = "Hyperbolic tangent: y = tanh(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.tanh.default", "x"}},
          .onnx = {"Tanh"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::tanh(x); }); },
          .constraints = {},
          .kernel = unary_kernel("tanh"),
          .tolerance = 1e-6,
          .samples = {"tanh(f32[2,3,5,7])", "tanh(f32[n,4])"}};
}

}  // namespace hetnn::ops
