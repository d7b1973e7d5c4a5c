// Questions asked of calls, their inference, and the wording of messages about them.
#include "hetnn/ops/call.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetnn/base/counted.h"
#include "hetnn/base/error.h"
#include "hetnn/base/requantize.h"
#include "hetnn/ops/integers.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

Quant quant_of(const Call& call, const Type& type) {
  const auto find = [&]<typename T>(std::string_view name, const T*) -> const T* {
    const auto at = call.attrs.find(name);
    return at == call.attrs.end() ? nullptr : &std::get<T>(at->second);
  };
  Quant out{.scales = *find(kQuantScale, static_cast<const std::vector<double>*>(nullptr))};
  if (const auto* zeros = find(kQuantZero, static_cast<const std::vector<Dim>*>(nullptr))) {
    out.zero_points.clear();
    for (const Dim& zero : *zeros) out.zero_points.push_back(static_cast<int32_t>(zero.value()));
  }
  if (const auto* axis = find(kQuantAxis, static_cast<const Dim*>(nullptr))) out.axis = static_cast<int>(axis->value());
  if (const auto* rounding = find(kQuantRounding, static_cast<const std::string*>(nullptr));
      rounding && !rounding_named(*rounding))
    fail(call, "quant_c5", text("'", kQuantRounding, "' is double, single or half_even_fp32; got '", *rounding, "'."));
  if (const auto fault = quant_fault({type.dtype, type.shape, out}))
    fail(call, fault->label, "a quantized result " + fault->text + ".");
  return out;
}

}  // namespace

std::string to_string(const Loc& loc) {
  if (!loc.file.empty()) return loc.line > 0 ? text(loc.file, ":", loc.line) : loc.file;
  return loc.scope;
}

const Type& Call::input(size_t index) const {
  HETNN_ASSERT(has(index), describe(*this), " reads absent input ", index);
  return *inputs[index].type;
}

const Attr& Call::attr(std::string_view attr_name, AttrKind kind) const {
  auto at = attrs.find(attr_name);
  HETNN_ASSERT(at != attrs.end(), describe(*this), " has no attribute ", attr_name);
  HETNN_ASSERT(attr_kind(at->second) == kind, describe(*this), " attribute ", attr_name, " is of kind ",
               attr_kind_name(attr_kind(at->second)));
  return at->second;
}

bool Call::flag(std::string_view attr_name) const { return std::get<bool>(attr(attr_name, AttrKind::boolean)); }
Dim Call::integer(std::string_view attr_name) const { return std::get<Dim>(attr(attr_name, AttrKind::integer)); }
double Call::real(std::string_view attr_name) const { return std::get<double>(attr(attr_name, AttrKind::real)); }
const std::string& Call::string(std::string_view attr_name) const {
  return std::get<std::string>(attr(attr_name, AttrKind::string));
}
DType Call::dtype(std::string_view attr_name) const { return std::get<DType>(attr(attr_name, AttrKind::dtype)); }
const std::vector<Dim>& Call::integers(std::string_view attr_name) const {
  return std::get<std::vector<Dim>>(attr(attr_name, AttrKind::integers));
}
const std::vector<double>& Call::reals(std::string_view attr_name) const {
  return std::get<std::vector<double>>(attr(attr_name, AttrKind::reals));
}
const Tensor& Call::tensor(std::string_view attr_name) const {
  return std::get<Tensor>(attr(attr_name, AttrKind::tensor));
}

std::string describe(const Call& call) {
  const std::string& called = call.loc.scope.empty() ? call.name : call.loc.scope;
  return text(call.op->name, " '", called, "'");
}

void fail(const Call& call, std::string_view label, const std::string& message) {
  const std::string where = to_string(call.loc);
  throw InvalidModel(text(describe(call), ": ", message, label.empty() ? "" : text(" (", label, ")"),
                          where.empty() ? "" : text("\n  at ", where)));
}

void collect_symbols(const Call& call, std::set<std::string>& symbols) {
  const auto collect = [&](const std::vector<Dim>& dims) {
    for (const Dim& dim : dims) dim.collect_symbols(symbols);
  };
  for (const Operand& input : call.inputs) {
    if (input.type) collect(input.type->shape);
  }
  for (const Type* output : call.outputs) collect(output->shape);
  for (const auto& [name, attr] : call.attrs) {
    if (const auto* dim = std::get_if<Dim>(&attr)) dim->collect_symbols(symbols);
    if (const auto* dims = std::get_if<std::vector<Dim>>(&attr)) collect(*dims);
  }
}

void complete(Call& call) {
  const OpDef& op = *call.op;
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  const size_t given = call.inputs.size();
  if (given > op.inputs.size() && !variadic) {
    fail(call, "", text("takes at most ", counted(op.inputs.size(), "input"), "; got ", given));
  }
  for (size_t k = 0; k < std::max(given, op.inputs.size()); ++k) {
    const InputDef& input = op.inputs[std::min(k, op.inputs.size() - 1)];
    if (!input.optional && !(input.variadic && k > 0 && k >= given) && !call.has(k)) {
      fail(call, "", text("input '", input.name, "' is missing"));
    }
  }
  for (auto& [name, attr] : call.attrs) {
    const AttrDef* def = op.find_attr(name);
    if (!def) fail(call, "", text("has no attribute '", name, "'"));
    // One integer is a list of one.
    if (const Dim* one = std::get_if<Dim>(&attr); one && def->kind == AttrKind::integers) attr = std::vector<Dim>{*one};
    if (def->kind != attr_kind(attr)) {
      fail(call, "",
           text("attribute '", name, "' is of kind ", attr_kind_name(def->kind), "; got ",
                attr_kind_name(attr_kind(attr))));
    }
  }
  for (const AttrDef& def : op.attrs) {
    if (call.attrs.contains(def.name)) continue;
    if (!def.default_value) fail(call, "", text("attribute '", def.name, "' is missing"));
    call.attrs.emplace(std::string(def.name), *def.default_value);
  }
  check_defined(call);
}

std::vector<Type> infer_types(const Call& call) {
  constexpr uint32_t kMoves = Trait::movement | Trait::conversion | Trait::constant | Trait::control;
  const bool moves = (call.op->traits & kMoves) != 0;
  const auto check = [&](const Type& type, std::string_view advice) {
    if (moves || !is_stored(type.dtype)) return;
    fail(call, "stored_c1",
         text("nothing is computed in ", dtype_name(type.dtype), "; got ", to_string(type), ". ", advice));
  };
  for (const Operand& input : call.inputs) {
    if (input.type) check(*input.type, "Cast it first.");
  }
  std::vector<Type> types = call.op->infer(call);
  const bool takes_bits = call.op->has(Trait::conversion) && call.op->has(Trait::integral);
  for (const Type& type : types) check(type, "Cast the result.");
  const bool stated = call.attrs.contains(kQuantScale);
  if (stated && call.op->find_attr("body"))
    fail(call, "quant_c6", text("runs a body, whose results state their scales; got ", kQuantScale, " of its own."));
  for (Type& type : types) {
    if (const auto fault = shape_fault(type.shape)) fail(call, "size", text("the result cannot be: ", *fault, "."));
    type.quant.reset();  // a copy of an input's type says nothing of the result's scale
    // What else a call gives, indices for one, are numbers.
    if (!may_be_quantized(type.dtype) || type.dtype != types.front().dtype) continue;
    if (stated) {
      type.quant = quant_of(call, type);
      continue;
    }
    if (takes_bits) continue;  // which stand for nothing
    if (has_real_sums(call)) {
      type.dtype = DType::f32;
      continue;
    }
    std::vector<const Type*> operands;  // that the result may take its scale from
    for (const Operand& input : call.inputs) {
      if (input.type && input.type->dtype == type.dtype) operands.push_back(input.type);
    }
    const auto quantized = std::find_if(operands.begin(), operands.end(), [](const Type* o) { return o->quant; });
    if (quantized == operands.end()) continue;
    const std::optional<Quant>& quant = (*quantized)->quant;
    const bool alike = std::all_of(operands.begin(), operands.end(), [&](const Type* o) { return o->quant == quant; });
    if (!call.op->has(Trait::movement) || !quant->per_tensor() || !alike) {
      fail(call, "quant_c4",
           text("the result of quantized operands must state its scale; got ", to_string(**quantized),
                " and no attribute ", kQuantScale, "."));
    }
    type.quant = quant;
  }
  if (stated && types.size() == 1) {
    Call typed = call;
    typed.outputs = {&types.front()};
    if (const std::optional<double> factor = impossible_factor(typed)) fail(call, "quant_c7", no_requant(*factor));
  }
  return types;
}

}  // namespace hetnn::ops
