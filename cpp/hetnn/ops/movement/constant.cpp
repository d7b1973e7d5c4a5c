// constant: a tensor known at compile time.
#include "hetnn/ops/nest.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Tensor& value = call.tensor("value");
  return {{value.dtype(), Shape(value.shape().begin(), value.shape().end())}};
}

void meaning(const Evaluation& e) { copy(e.call.tensor("value"), e.output()); }

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
          .meaning = meaning,
          .constraints = {},
          .samples = {}};
}

}  // namespace hetnn::ops
