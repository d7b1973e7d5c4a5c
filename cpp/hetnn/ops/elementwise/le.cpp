// le: y = whether a is at most b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_le() {
  return predicate(
      {.name = "le",
       .doc = "Comparison: y = whether a is at most b.",
       .torch = {{"aten.le.Tensor", "a b"}, {"aten.le.Scalar", "a b"}},
       .onnx = {{"LessOrEqual", 1, "a b"}},
       .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a <= b; }); },
       .samples = {"le(f32[2,3,5,7], f32[2,3,5,7])", "le(f32[2,3,4,4], f32[3,1,1])", "le(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
