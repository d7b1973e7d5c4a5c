// lt: y = whether a is below b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_lt() {
  return predicate(
      {.name = "lt",
       .doc = "Comparison: y = whether a is below b.",
       .torch = {{"aten.lt.Tensor", "a b"}, {"aten.lt.Scalar", "a b"}},
       .onnx = {{"Less", 1, "a b"}},
       .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a < b; }); },
       .samples = {"lt(f32[2,3,5,7], f32[2,3,5,7])", "lt(f32[2,3,4,4], f32[3,1,1])", "lt(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
