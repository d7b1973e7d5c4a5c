// round: y = round(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_round() {
  return {.name = "round",
          .doc = "Nearest integer, halves to even: y = round(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.round.default", "x"}},
          .onnx = {"Round"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::nearbyint(x); }); },
          .constraints = {},
          .kernel = unary_kernel("round"),
          .tolerance = 0,
          .samples = {"round(f32[2,3,5,7])", "round(f32[n,4])"}};
}

}  // namespace hetnn::ops
