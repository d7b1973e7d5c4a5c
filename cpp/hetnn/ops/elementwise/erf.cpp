// erf: y = erf(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_erf() {
  return {.name = "erf",
          .doc = "Error function: y = erf(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.erf.default", "x"}},
          .onnx = {"Erf"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::erf(x); }); },
          .constraints = {},
          .kernel = unary_kernel("erf"),
          .tolerance = 1e-5,
          .samples = {"erf(f32[2,3,5,7])", "erf(f32[n,4])"}};
}

}  // namespace hetnn::ops
