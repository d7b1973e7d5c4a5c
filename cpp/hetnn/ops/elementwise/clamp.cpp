// clamp: y = min(max(x, min), max).
#include <limits>

#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_clamp() {
  return elementwise(Function::clamp,
                     {.doc = "Limits values to a range; NaN stays: y = min(max(x, min), max).",
                      .attrs = {{"min", AttrKind::real, -std::numeric_limits<double>::infinity(), "lower bound"},
                                {"max", AttrKind::real, std::numeric_limits<double>::infinity(), "upper bound"}},
                      .primitive = Primitive::clamp,
                      .onnx = {"Clip"},
                      .samples = {"clamp(f32[2,3,5,7])", "clamp(f32[n,4])"}});
}

}  // namespace hetnn::ops
