// ne: y = whether a differs from b.
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_ne() {
  return predicate(
      {.name = "ne",
       .doc = "Comparison: y = whether a differs from b.",
       .torch = {{"aten.ne.Tensor", "a b"}, {"aten.ne.Scalar", "a b"}},
       .meaning = [](const Evaluation& e) { map_elements<2>(e, [](auto a, auto b) { return a != b; }); },
       .samples = {"ne(f32[2,3,5,7], f32[2,3,5,7])", "ne(f32[2,3,4,4], f32[3,1,1])", "ne(f32[n,1], f32[4])"}});
}

}  // namespace hetnn::ops
