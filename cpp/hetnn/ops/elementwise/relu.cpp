// relu: y = max(x, 0).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_relu() {
  return elementwise(Function::relu, {.doc = "Rectified linear unit: y = max(x, 0).",
                                      .primitive = Primitive::relu,
                                      .torch = {{"aten.relu.default", "x"}},
                                      .onnx = {{"Relu", 1, "x"}},
                                      .samples = {"relu(f32[2,3,5,7])", "relu(f32[n,4])", "relu(i32[3])"}});
}

}  // namespace hetnn::ops
