// clamp: y = min(max(x, min), max).
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

ir::OpDef define_clamp() {
  return {.name = "clamp",
          .doc = "Limits values to a range; NaN stays: y = min(max(x, min), max).",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"min", ir::AttrKind::real, -std::numeric_limits<double>::infinity(), "lower bound"},
                    {"max", ir::AttrKind::real, std::numeric_limits<double>::infinity(), "upper bound"}},
          .traits = static_cast<uint32_t>(ir::Trait::elementwise),
          .torch = {},
          .onnx = {"Clip"},
          .infer = same_as_input,
          .evaluate =
              [](const ir::Evaluation& e) {
                const double low = e.node.real("min"), high = e.node.real("max");
                return map_real(e, [=](double x) { return x < low ? low : x > high ? high : x; });
              },
          .constraints = {},
          .kernel =
              [](const ir::Node& node) {
                ir::KernelUse use = unary_kernel("clip", {"min", "max"})(node);
                return use;
              },
          .tolerance = 1e-6,
          .samples = {"clamp(f32[2,3,5,7])", "clamp(f32[n,4])"}};
}

}  // namespace hetnn::ops
