// leaky_relu: y = x where x > 0, else negative_slope * x.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_leaky_relu() {
  return {.name = "leaky_relu",
          .doc = "Leaky rectified linear unit: y = x where x > 0, else negative_slope * x.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"negative_slope", AttrKind::real, 0.01, "slope below zero"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.leaky_relu.default", "x negative_slope"}},
          .onnx = {"LeakyRelu"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                const double slope = e.call.real("negative_slope");
                return map_real(e, [=](double x) { return x > 0 ? x : slope * x; });
              },
          .constraints = {},
          .kernel = unary_kernel("leaky_relu", {"negative_slope"}),
          .tolerance = 1e-6,
          .samples = {"leaky_relu(f32[2,3,5,7])", "leaky_relu(f32[n,4])"}};
}

}  // namespace hetnn::ops
