// sigmoid: y = 1 / (1 + exp(-x)).
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops {

OpDef define_sigmoid() {
  return elementwise(Function::sigmoid, {.doc = "Logistic function: y = 1 / (1 + exp(-x)).",
                                         .torch = {{"aten.sigmoid.default", "x"}},
                                         .onnx = {{"Sigmoid", 1, "x"}},
                                         .samples = {"sigmoid(f32[2,3,5,7])", "sigmoid(f32[n,4])"}});
}

}  // namespace hetnn::ops
