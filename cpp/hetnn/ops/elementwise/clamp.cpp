// clamp: y = min(max(x, min), max).
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_clamp() {
  return {.name = "clamp",
          .doc = "Limits values to a range; NaN stays: y = min(max(x, min), max).",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"min", AttrKind::real, -std::numeric_limits<double>::infinity(), "lower bound"},
                    {"max", AttrKind::real, std::numeric_limits<double>::infinity(), "upper bound"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {},
          .onnx = {"Clip"},
          .infer = same_as_input,
          .evaluate =
              [](const Evaluation& e) {
                const double low = e.call.real("min"), high = e.call.real("max");
                return map_real(e, [=](double x) { return x < low ? low : x > high ? high : x; });
              },
          .constraints = {},
          .kernel =
              [](const Call& call) {
                KernelUse use = unary_kernel("clip", {"min", "max"})(call);
                return use;
              },
          .tolerance = 1e-6,
          .samples = {"clamp(f32[2,3,5,7])", "clamp(f32[n,4])"}};
}

}  // namespace hetnn::ops
