// Reductions as operators.
#include "hetnn/ops/reduce/reduction.h"

#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

std::vector<ir::Type> infer_reduction(const ir::Node& node) { return {{node.input(0)->dtype(), reduced_shape(node)}}; }

ir::OpDef reduction(const Reduction& of, std::vector<ir::Type> (*infer)(const ir::Node&)) {
  return {.name = of.name,
          .doc = of.doc,
          .inputs = {{"x", "any shape"}},
          .attrs = {{"axes", ir::AttrKind::integers, std::vector<Dim>{}, "the axes; empty: all"},
                    {"keepdim", ir::AttrKind::boolean, false, "whether reduced axes stay, as 1"}},
          .traits = static_cast<uint32_t>(ir::Trait::compute),
          .torch = of.torch,
          .onnx = of.onnx,
          .infer = infer,
          .evaluate = of.evaluate,
          .work = [](const ir::Node& node) { return ir::Work{.macs = 0, .flops = elements(node.input(0)->shape())}; },
          .constraints = {},
          .kernel = reduce_kernel(of.kernel),
          .tolerance = of.tolerance,
          .samples = of.samples};
}

}  // namespace hetnn::ops
