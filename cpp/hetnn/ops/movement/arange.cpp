// arange: evenly spaced integers or reals.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  const Dim length = ceil_div(node.integer("end") - node.integer("start"), node.integer("step"));
  if (length.is_static() && length.value() < 0) {
    ir::fail(node, "arange_c1",
             text("end must lie in the direction of step; got ", node.integer("start"), ", ", node.integer("end"), ", ",
                  node.integer("step"), "."));
  }
  return {{node.dtype("dtype"), {length}}};
}

std::vector<Tensor> evaluate(const ir::Evaluation& e) {
  const int64_t start = e.node.integer("start").evaluate(e.bindings),
                step = e.node.integer("step").evaluate(e.bindings);
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(e.node.dtype("dtype"), e.output_shape(), &data);
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t k = 0; k < y.elems(); ++k) mutable_values<T>(data)[k] = static_cast<T>(start + k * step);
  });
  return {y};
}

}  // namespace

ir::OpDef define_arange() {
  return {.name = "arange",
          .doc = "start, start + step, ... below end, whole numbers.",
          .inputs = {},
          .attrs = {{"start", ir::AttrKind::integer, Dim(0), "the first"},
                    {"end", ir::AttrKind::integer, std::nullopt, "one past the last"},
                    {"step", ir::AttrKind::integer, Dim(1), "the distance"},
                    {"dtype", ir::AttrKind::dtype, DType::i64, "the element type"}},
          .traits = static_cast<uint32_t>(ir::Trait::source),
          .torch = {},
          .onnx = {"Range"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("arange", {"start", "step"}, ir::KernelUse::Layout::plain),
          .tolerance = 0,
          .samples = {"arange() {end = 5}", "arange() {start = 2, end = 9, step = 3, dtype = f32}"}};
}

}  // namespace hetnn::ops
