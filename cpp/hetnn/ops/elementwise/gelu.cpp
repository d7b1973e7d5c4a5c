// gelu: y = x * Phi(x), exactly or by its tanh approximation.
#include "hetnn/ops/elementwise/formula.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const std::string& form = call.string("approximate");
  if (form != "none" && form != "tanh")
    fail(call, "gelu_c2", text("approximate must be none or tanh; got ", form, "."));
  return same_as_real_input(call);
}

}  // namespace

OpDef define_gelu() {
  return elementwise(Function::gelu,
                     {.doc = "Gaussian error linear unit: y = x * Phi(x), Phi the normal distribution function.",
                      .attrs = {{"approximate", AttrKind::string, std::string("none"), "none or tanh"}},
                      .torch = {{"aten.gelu.default", "x approximate"}},
                      .onnx = {{"Gelu", 20, "x approximate"}},
                      .infer = infer,
                      .meaning = [](const Evaluation& e) { evaluate(*called_function(e.call), e); },
                      .samples = {"gelu(f32[2,3,5,7])", "gelu(f32[n,4]) {approximate = tanh}"}});
}

}  // namespace hetnn::ops
