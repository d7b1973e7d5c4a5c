// eq: y = whether a equals b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_eq() {
  return predicate(
      {.name = "eq",
       .doc = "Comparison: y = whether a equals b.",
       .torch = {{"aten.eq.Tensor", "a b"}, {"aten.eq.Scalar", "a b"}},
       .onnx = {{"Equal", 1, "a b"}},
       .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a == b; }); },
       .samples = {"eq(f32[2,3,5,7], f32[2,3,5,7])", "eq(f32[2,3,4,4], f32[3,1,1])", "eq(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
