// log: y = log(x).
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {

OpDef define_log() {
  return {.name = "log",
          .doc = "Natural logarithm: y = log(x).",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.log.default", "x"}},
          .onnx = {"Log"},
          .infer = same_as_input,
          .evaluate = [](const Evaluation& e) { return map_real(e, [=](double x) { return std::log(x); }); },
          .constraints = {},
          .kernel = unary_kernel("log"),
          .tolerance = 1e-5,
          .samples = {"log(f32[2,3,5,7])", "log(f32[n,4])"}};
}

}  // namespace hetnn::ops
