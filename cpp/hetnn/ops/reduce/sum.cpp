// sum: reduction over axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) { return {{node.input(0)->dtype(), reduced_shape(node)}}; }

std::vector<Tensor> evaluate(const ir::Evaluation& e) {
  return reduce_real(
      e, 0, [](double so_far, double x) { return so_far + x; },
      [](double so_far, [[maybe_unused]] int64_t count) { return so_far; });
}

}  // namespace

ir::OpDef define_sum() {
  return {
      .name = "sum",
      .doc = "sum over axes; no axes: over all.",
      .inputs = {{"x", "any shape"}},
      .attrs = {{"axes", ir::AttrKind::integers, std::vector<Dim>{}, "the axes; empty: all"},
                {"keepdim", ir::AttrKind::boolean, false, "whether reduced axes stay, as 1"}},
      .traits = static_cast<uint32_t>(ir::Trait::compute),
      .torch = {},
      .onnx = {"ReduceSum"},
      .infer = infer,
      .evaluate = evaluate,
      .work = [](const ir::Node& node) { return ir::Work{.macs = 0, .flops = elements(node.input(0)->shape())}; },
      .constraints = {},
      .kernel = reduce_kernel("sum"),
      .tolerance = 1e-5,
      .samples = {"sum(f32[2,3,4,5]) {axes = [2,3]}", "sum(f32[n,4]) {axes = [-1], keepdim = true}", "sum(f32[2,3])"}};
}

}  // namespace hetnn::ops
