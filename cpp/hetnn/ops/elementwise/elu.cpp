// elu: y = x where x > 0, else alpha * (exp(x) - 1).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_elu() {
  return {.name = "elu",
          .doc = "Exponential linear unit: y = x where x > 0, else alpha * (exp(x) - 1).",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"alpha", AttrKind::real, 1.0, "limit below zero, negated"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {},
          .onnx = {"Elu"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                const double alpha = e.call.real("alpha");
                return map_real(e, [=](double x) { return x > 0 ? x : alpha * std::expm1(x); });
              },
          .constraints = {},
          .kernel = unary_kernel("elu", {"alpha"}),
          .tolerance = 1e-5,
          .samples = {"elu(f32[2,3,5,7])", "elu(f32[n,4])"}};
}

}  // namespace hetnn::ops
