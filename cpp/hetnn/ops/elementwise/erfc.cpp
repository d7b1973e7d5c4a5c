// erfc: y = 1 - erf(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_erfc() {
  return elementwise(Function::erfc, {.doc = "Complement of the error function, exact for large x: y = 1 - erf(x).",
                                      .torch = {{"aten.special_erfc.default", "x"}, {"aten.erfc.default", "x"}},
                                      .samples = {"erfc(f32[2,3,5,7])", "erfc(f32[n,4])"}});
}

}  // namespace hetnn::ops
