// sigmoid: y = 1 / (1 + exp(-x)).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_sigmoid() {
  return {
      .name = "sigmoid",
      .doc = "Logistic function: y = 1 / (1 + exp(-x)).",
      .inputs = {{"x", "any shape"}},
      .attrs = {},
      .traits = static_cast<uint32_t>(Trait::elementwise),
      .torch = {{"aten.sigmoid.default", "x"}},
      .onnx = {"Sigmoid"},
      .infer = same_as_input,
      .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return 1 / (1 + std::exp(-x)); }); },
      .constraints = {},
      .kernel = unary_kernel("sigmoid"),
      .tolerance = 1e-6,
      .samples = {"sigmoid(f32[2,3,5,7])", "sigmoid(f32[n,4])"}};
}

}  // namespace hetnn::ops
