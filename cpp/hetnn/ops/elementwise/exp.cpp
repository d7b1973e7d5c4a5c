// exp: y = exp(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_exp() {
  return {.name = "exp",
          .doc = "Exponential: y = exp(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.exp.default", "x"}},
          .onnx = {"Exp"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::exp(x); }); },
          .constraints = {},
          .kernel = unary_kernel("exp"),
          .tolerance = 1e-5,
          .samples = {"exp(f32[2,3,5,7])", "exp(f32[n,4])"}};
}

}  // namespace hetnn::ops
