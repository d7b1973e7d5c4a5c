// floor: y = floor(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_floor() {
  return elementwise(Function::floor, {.doc = "Largest integer not above: y = floor(x).",
                                       .torch = {{"aten.floor.default", "x"}},
                                       .onnx = {{"Floor", 1, "x"}},
                                       .samples = {"floor(f32[2,3,5,7])", "floor(f32[n,4])"}});
}

}  // namespace hetnn::ops
