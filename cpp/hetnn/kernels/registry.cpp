// The variants of all families, each family a folder that defines <family>_variants, and which one serves a call.
#include <algorithm>
#include <iterator>

#include "hetnn/base/error.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/packing.h"
#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::kernels {

#define HETNN_FAMILY(name) std::span<const Variant> name##_variants();
#include "hetnn/kernels/all_families.inc"
#undef HETNN_FAMILY

namespace {

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
#define HETNN_FAMILY(name) out.insert(out.end(), name##_variants().begin(), name##_variants().end());
#include "hetnn/kernels/all_families.inc"
#undef HETNN_FAMILY
    return out;
  }();
  return all;
}

constexpr std::string_view kOfDoubles = "doubles";  // of all elementwise functions

// Elementwise functions share kernels by the number of their operands.
std::string_view variant_name(ops::Function function, bool of_integers = false) {
  const bool unary = ops::function_def(function).operands == 1;
  return of_integers ? (unary ? "unary_i8" : "binary_i8") : unary ? "unary" : "binary";
}

}  // namespace

std::span<const Variant> all_kernels() { return variants(); }

const Variant* find_kernel(std::string_view name) {
  const auto at = std::ranges::find(variants(), name, &Variant::name);
  return at == variants().end() ? nullptr : &*at;
}

std::vector<const Variant*> variants_of(const ops::Call& call) {
  const std::optional<Step> function = function_of(call);
  const auto rows = [&](bool of_integers) {
    std::vector<const Variant*> out;
    const std::string_view named =
        function ? variant_name(*ops::function_from_name(function->function), of_integers) : std::string_view();
    for (const Variant& each : variants())
      if (each.integers == of_integers &&
          (function ? each.name == named || (!of_integers && each.name == kOfDoubles) : each.op == call.op->name))
        out.push_back(&each);
    return out;
  };
  const ops::Type* first = call.inputs.empty() ? nullptr : call.inputs[0].type;
  if (first && first->quant && first->dtype == DType::i8) {
    if (std::vector<const Variant*> found = rows(true); !found.empty()) return found;
  }
  return rows(false);
}

bool is_made_by(KernelFactory create, const ops::Call& call) {
  return std::ranges::any_of(variants_of(call), [&](const Variant* each) { return each->create == create; });
}

Refusal refusal_of(const Variant& variant, const KernelCall& call) {
  if (!call.steps.empty() && !variant.takes_steps) return text(variant.name, " takes no steps.");
  const PackedCall packed(variant, call);
  if (packed.given().empty()) return variant.serves(call);
  for (const int input : packed.given()) {
    const TensorView& weight = call.inputs[static_cast<size_t>(input)];
    if (weight.layout != Layout::plain) return text(variant.name, " packs weights that lie plain.");
  }
  return variant.serves(packed.call());
}

std::unique_ptr<Kernel> make_kernel(const Variant& variant, const KernelCall& call) {
  if (const Refusal refusal = refusal_of(variant, call)) throw Unsupported(*refusal);
  try {
    return with_packing(variant, call);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    throw InternalError(text("the kernel ", variant.name, " serves a call that it is not made for: ", error.what()));
  }
}

bool reads_narrow(const ops::OpDef& op, int input) {
  return std::ranges::any_of(
      variants(), [&](const Variant& each) { return each.op == op.name && each.is_narrow && each.is_narrow(input); });
}

bool computes(const Variant& variant, const ops::OpDef& op) {
  if (!variant.op.empty()) return variant.op == op.name;
  const std::optional<ops::Function> function = ops::function_from_name(op.name);
  return function && (variant.name == kOfDoubles || variant.name == variant_name(*function, variant.integers));
}

std::string_view speed_of(std::string_view function) {
  const std::optional<ops::Function> found = ops::function_from_name(function);
  return found && ops::function_def(*found).cost == ops::Cost::transcendental ? "transcendental" : "elementwise";
}

std::optional<Step> function_of(const ops::Call& call) {
  const std::optional<ops::Function> function = ops::called_function(call);
  if (!function) return std::nullopt;
  const ops::FunctionDef& def = ops::function_def(*function);
  Step out{.function = std::string(def.name), .input = -1, .values = {}};
  for (std::string_view constant : def.constants) {
    if (!constant.empty()) out.values.push_back(call.real(constant));
  }
  return out;
}

Params params_of(const ops::Call& call) {
  Params out(call.attrs);
  for (size_t k = 0; k < call.op->inputs.size(); ++k) {
    if (call.op->inputs[k].optional) out.set(std::string(call.op->inputs[k].name), int64_t{call.has(k)});
  }
  if (std::optional<Step> function = function_of(call)) {
    out.set("op", std::move(function->function));
    out.set("values", std::move(function->values));
  } else if (!out.has("op")) {
    out.set("op", std::string(call.op->name));
  }
  const auto& quant = call.output().quant   ? call.output().quant
                      : call.inputs.empty() ? std::nullopt
                                            : call.input(0).quant;
  if (quant) {
    out.set("scale", quant->scale());
    out.set("zero_point", int64_t{quant->zero_point()});
    out.set("scale_count", static_cast<int64_t>(quant->scales.size()));
  }
  out.set("operator", std::string(call.op->name));
  const auto set_quant = [&](std::string_view name, const ops::Type& type) {
    if (!type.quant) return;
    out.set(text(name, ".scales"), type.quant->scales);
    out.set(text(name, ".zeros"), std::vector<int64_t>(type.quant->zero_points.begin(), type.quant->zero_points.end()));
    out.set(text(name, ".axis"), int64_t{type.quant->axis});
  };
  for (size_t k = 0; k < std::min(call.op->inputs.size(), call.inputs.size()); ++k) {
    if (call.has(k)) set_quant(call.op->inputs[k].name, call.input(k));
  }
  for (size_t k = 0; k < std::min(call.op->outputs.size(), call.outputs.size()); ++k)
    set_quant(call.op->outputs[k], call.output(k));
  return out;
}

}  // namespace hetnn::kernels
