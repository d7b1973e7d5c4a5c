// gelu: y = x * Phi(x), exactly or by its tanh approximation.
#include <cmath>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Tensor> evaluate(const Evaluation& e) {
  if (e.call.string("approximate") == "tanh") {
    return map_real(e,
                    [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); });
  }
  return map_real(e, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); });
}

std::vector<Type> infer(const Call& call) {
  const std::string& form = call.string("approximate");
  if (form != "none" && form != "tanh")
    fail(call, "gelu_c1", text("approximate must be none or tanh; got ", form, "."));
  return same_as_input(call);
}

}  // namespace

OpDef define_gelu() {
  return {.name = "gelu",
          .doc = "Gaussian error linear unit: y = x * Phi(x), Phi the normal distribution function.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"approximate", AttrKind::string, std::string("none"), "none or tanh"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {{"aten.gelu.default", "x approximate"}},
          .onnx = {"Gelu"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel =
              [](const Call& call) {
                return unary_kernel(call.string("approximate") == "tanh" ? "gelu_tanh" : "gelu")(call);
              },
          .tolerance = 1e-5,
          .samples = {"gelu(f32[2,3,5,7])", "gelu(f32[n,4]) {approximate = tanh}"}};
}

}  // namespace hetnn::ops
