// Asks all variants of a call.
#include "hetnn/kernels/query/refusals.h"

#include "hetnn/base/error.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::kernels {
namespace {

// Of an operand that the variant reads as constants only; nothing is packed where a meaning runs.
Refusal refuse_variable(const Variant& variant, const ops::Call& call, const KernelCall& asked) {
  int present = 0;
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!call.has(k)) continue;
    const bool is_weight = variant.is_weight && variant.is_weight(asked, present++);
    if ((is_weight && !variant.packer) || (variant.is_table && variant.is_table(static_cast<int>(k))))
      return text(variant.name, " takes constants as ", call.op->inputs[k].name, ".");
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> refusals_of(const ops::Call& call, std::span<const TensorView> inputs,
                                     std::span<const TensorView> outputs) {
  std::vector<std::string> out;
  const Params params = params_of(call);
  const KernelCall asked{inputs, outputs, params};
  for (const Variant* variant : variants_of(call)) {
    Refusal refusal = refusal_of(*variant, asked);
    if (!refusal) refusal = refuse_variable(*variant, call, asked);
    if (!refusal) return {};
    out.push_back(*std::move(refusal));
  }
  return out;
}

}  // namespace hetnn::kernels
