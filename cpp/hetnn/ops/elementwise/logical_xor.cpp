// logical_xor: y = a != b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_logical_xor() {
  return predicate({.name = "logical_xor",
                    .doc = "Logical operation: y = a != b.",
                    .torch = {{"aten.logical_xor.default", "a b"}},
                    .onnx = {{"Xor", 1, "a b"}},
                    .meaning =
                        [](const Evaluation& e) {
                          map_elements<2>(e,
                                          [](auto a, auto b) { return static_cast<bool>(a) != static_cast<bool>(b); });
                        },
                    .samples = {"logical_xor(bool[2,3], bool[3])"}});
}

}  // namespace hetnn::ops
