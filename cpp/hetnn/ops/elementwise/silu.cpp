// silu: y = x / (1 + exp(-x)).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_silu() {
  return {
      .name = "silu",
      .doc = "Sigmoid linear unit: y = x / (1 + exp(-x)).",
      .inputs = {{"x", "any shape"}},
      .attrs = {},
      .traits = static_cast<uint32_t>(Trait::elementwise),
      .torch = {{"aten.silu.default", "x"}},
      .onnx = {},
      .infer = same_as_input,
      .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return x / (1 + std::exp(-x)); }); },
      .constraints = {},
      .kernel = unary_kernel("silu"),
      .tolerance = 1e-5,
      .samples = {"silu(f32[2,3,5,7])", "silu(f32[n,4])"}};
}

}  // namespace hetnn::ops
