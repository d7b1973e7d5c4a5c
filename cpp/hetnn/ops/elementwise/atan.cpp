// atan: y = atan(x).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_atan() {
  return elementwise(Function::atan, {.doc = "Inverse tangent: y = atan(x).",
                                      .torch = {{"aten.atan.default", "x"}},
                                      .onnx = {{"Atan", 7, "x"}},
                                      .samples = {"atan(f32[2,3,5,7])", "atan(f32[n,4])"}});
}

}  // namespace hetnn::ops
