// ge: y = whether a is at least b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_ge() {
  return predicate(
      {.name = "ge",
       .doc = "Comparison: y = whether a is at least b.",
       .torch = {{"aten.ge.Tensor", "a b"}, {"aten.ge.Scalar", "a b"}},
       .onnx = {{"GreaterOrEqual", 1, "a b"}},
       .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a >= b; }); },
       .samples = {"ge(f32[2,3,5,7], f32[2,3,5,7])", "ge(f32[2,3,4,4], f32[3,1,1])", "ge(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
