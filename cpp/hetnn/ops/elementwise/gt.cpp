// gt: y = whether a is above b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_gt() {
  return predicate(
      {.name = "gt",
       .doc = "Comparison: y = whether a is above b.",
       .torch = {{"aten.gt.Tensor", "a b"}, {"aten.gt.Scalar", "a b"}},
       .onnx = {{"Greater", 1, "a b"}},
       .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a > b; }); },
       .samples = {"gt(f32[2,3,5,7], f32[2,3,5,7])", "gt(f32[2,3,4,4], f32[3,1,1])", "gt(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
