// logical_and: y = a && b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_logical_and() {
  return predicate({.name = "logical_and",
                    .doc = "Logical operation: y = a && b.",
                    .torch = {{"aten.logical_and.default", "a b"}},
                    .onnx = {{"And", 1, "a b"}},
                    .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a && b; }); },
                    .samples = {"logical_and(bool[2,3], bool[3])"}});
}

}  // namespace hetnn::ops
