// abs: y = |x|.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_abs() {
  return {.name = "abs",
          .doc = "Absolute value: y = |x|.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.abs.default", "x"}},
          .onnx = {"Abs"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::abs(x); }); },
          .constraints = {},
          .kernel = unary_kernel("abs"),
          .tolerance = 0,
          .samples = {"abs(f32[2,3,5,7])", "abs(f32[n,4])"}};
}

}  // namespace hetnn::ops
