// constant: a tensor known at compile time.
#include "hetnn/ir/graph.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  const Tensor& value = node.tensor("value");
  return {{value.dtype(), Shape(value.shape().begin(), value.shape().end())}};
}

std::vector<Tensor> evaluate(const ir::Evaluation& e) { return {e.node.tensor("value")}; }

}  // namespace

ir::OpDef define_constant() {
  return {.name = "constant",
          .doc = "A tensor known at compile time.",
          .inputs = {},
          .attrs = {{"value", ir::AttrKind::tensor, std::nullopt, "the tensor"}},
          .traits = ir::Trait::source | ir::Trait::constant,
          .torch = {},
          .onnx = {"Constant"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .samples = {}};
}

}  // namespace hetnn::ops
