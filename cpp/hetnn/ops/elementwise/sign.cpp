// sign: y = -1, 0 or 1.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_sign() {
  return elementwise(Function::sign, {.doc = "Sign: y = -1, 0 or 1.",
                                      .torch = {{"aten.sign.default", "x"}},
                                      .samples = {"sign(f32[2,3,5,7])", "sign(f32[n,4])"}});
}

}  // namespace hetnn::ops
