// logical_or: y = a || b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_logical_or() {
  return predicate({.name = "logical_or",
                    .doc = "Logical operation: y = a || b.",
                    .torch = {{"aten.logical_or.default", "a b"}},
                    .onnx = {{"Or", 1, "a b"}},
                    .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a || b; }); },
                    .samples = {"logical_or(bool[2,3], bool[3])"}});
}

}  // namespace hetnn::ops
