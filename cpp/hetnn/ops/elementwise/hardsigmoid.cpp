// hardsigmoid: y = min(max(x + 3, 0), 6) / 6.
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_hardsigmoid() {
  return elementwise(Function::hardsigmoid,
                     {.doc = "Piecewise linear logistic function: y = min(max(x + 3, 0), 6) / 6.",
                      .torch = {{"aten.hardsigmoid.default", "x"}},
                      .samples = {"hardsigmoid(f32[2,3,5,7])", "hardsigmoid(f32[n,4])"}});
}

}  // namespace hetnn::ops
