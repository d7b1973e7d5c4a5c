// mish: y = x * tanh(log(1 + exp(x))).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_mish() {
  return {.name = "mish",
          .doc = "Self-regularised activation: y = x * tanh(log(1 + exp(x))).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.mish.default", "x"}},
          .onnx = {"Mish"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                return map_real(e, [=](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
              },
          .constraints = {},
          .kernel = unary_kernel("mish"),
          .tolerance = 1e-5,
          .samples = {"mish(f32[2,3,5,7])", "mish(f32[n,4])"}};
}

}  // namespace hetnn::ops
