// silu: y = x / (1 + exp(-x)).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_silu() {
  return elementwise(Function::silu, {.doc = "Sigmoid linear unit: y = x / (1 + exp(-x)).",
                                      .torch = {{"aten.silu.default", "x"}},
                                      .samples = {"silu(f32[2,3,5,7])", "silu(f32[n,4])"}});
}

}  // namespace hetnn::ops
