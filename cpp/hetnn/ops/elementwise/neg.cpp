// neg: y = -x.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_neg() {
  return {.name = "neg",
          .doc = "Negation: y = -x.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.neg.default", "x"}},
          .onnx = {"Neg"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return -x; }); },
          .constraints = {},
          .kernel = unary_kernel("neg"),
          .tolerance = 0,
          .samples = {"neg(f32[2,3,5,7])", "neg(f32[n,4])"}};
}

}  // namespace hetnn::ops
