// squareplus: y = (x + sqrt(x x + 4)) / 2.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_squareplus() {
  return elementwise(Function::squareplus, {.doc = "A smooth rectifier: y = (x + sqrt(x x + 4)) / 2.",
                                            .samples = {"squareplus(f32[2,3,5,7])", "squareplus(f32[n,4])"}});
}

}  // namespace hetnn::ops
