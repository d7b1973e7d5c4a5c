// logical_not: y = x is zero.
#include "hetnn/ops/nest.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
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
          .meaning = [](const Evaluation& e) { map_elements<1>(e, [](auto x) { return x == decltype(x)(0); }); },
          .tolerance = 0,
          .samples = {"logical_not(bool[2,3])"}};
}

}  // namespace hetnn::ops
