// constant: a tensor known at compile time.
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Tensor& value = call.tensor("value");
  return {{value.dtype(), Shape(value.shape().begin(), value.shape().end())}};
}

std::vector<Tensor> evaluate(const Evaluation& e) { return {e.call.tensor("value")}; }

}  // namespace

OpDef define_constant() {
  return {.name = "constant",
          .doc = "A tensor known at compile time.",
          .inputs = {},
          .attrs = {{"value", AttrKind::tensor, std::nullopt, "the tensor"}},
          .traits = Trait::source | Trait::constant,
          .torch = {},
          .onnx = {"Constant"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .samples = {}};
}

}  // namespace hetnn::ops
