// ceil: y = ceil(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_ceil() {
  return {.name = "ceil",
          .doc = "Smallest integer not below: y = ceil(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.ceil.default", "x"}},
          .onnx = {"Ceil"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::ceil(x); }); },
          .constraints = {},
          .kernel = unary_kernel("ceil"),
          .tolerance = 0,
          .samples = {"ceil(f32[2,3,5,7])", "ceil(f32[n,4])"}};
}

}  // namespace hetnn::ops
