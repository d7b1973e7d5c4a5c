// logical_not: y = x is zero.
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

void evaluate_not(const Evaluation& e) {
  const View& x = e.input(0);
  bool* y = e.output().values<bool>();
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto from = x.values<T>();
    for (size_t k = 0; k < from.size(); ++k) y[k] = static_cast<Wide<T>>(from[k]) == Wide<T>(0);
  });
}

}  // namespace

OpDef define_logical_not() {
  return {.name = "logical_not",
          .doc = "Whether x is false or zero.",
          .inputs = {{"x", "any shape"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.logical_not.default", "x"}},
          .onnx = {{"Not", 1, "x"}},
          .infer =
              [](const Call& call) {
                return std::vector<Type>{{DType::boolean, call.input(0).shape}};
              },
          .meaning = evaluate_not,
          .tolerance = 0,
          .samples = {"logical_not(bool[2,3])"}};
}

}  // namespace hetnn::ops
