// rsqrt: y = 1 / sqrt(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_rsqrt() {
  return elementwise(Function::rsqrt, {.doc = "Reciprocal square root: y = 1 / sqrt(x).",
                                       .torch = {{"aten.rsqrt.default", "x"}},
                                       .samples = {"rsqrt(f32[2,3,5,7])", "rsqrt(f32[n,4])"}});
}

}  // namespace hetnn::ops
