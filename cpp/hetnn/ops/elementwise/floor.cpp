// floor: y = floor(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_floor() {
  return {.name = "floor",
          .doc = "Largest integer not above: y = floor(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.floor.default", "x"}},
          .onnx = {"Floor"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::floor(x); }); },
          .constraints = {},
          .kernel = unary_kernel("floor"),
          .tolerance = 0,
          .samples = {"floor(f32[2,3,5,7])", "floor(f32[n,4])"}};
}

}  // namespace hetnn::ops
