// The operator table and the small questions asked of an operator's record.
#include "hetnn/ir/op_def.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/base/nearest_names.h"
#include "hetnn/ir/graph.h"

namespace hetnn::ir {
namespace {

const AttrDef kQuantAttrs[] = {
    {kQuantScale, AttrKind::reals, std::nullopt,
     "scale of the result's integers; one, or one for each index of axis 0"},
    {kQuantZero, AttrKind::integer, std::nullopt, "the integer that stands for 0"},
};

std::string number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

Quant quant_of(const Node& node, const Type& type) {
  const auto& scales = std::get<std::vector<double>>(node.attrs().find(kQuantScale)->second);
  const auto zero = node.attrs().find(kQuantZero);
  Quant out{scales, zero == node.attrs().end() ? 0 : static_cast<int32_t>(std::get<Dim>(zero->second).value())};
  const bool positive =
      !scales.empty() && std::all_of(scales.begin(), scales.end(), [](double s) { return s > 0 && std::isfinite(s); });
  if (!positive || (type.dtype != DType::i8 && type.dtype != DType::i32)) {
    fail(node, "quant_c1",
         text("a quantized result must be i8 or i32 with finite positive scales; got ", dtype_name(type.dtype), " and ",
              scales.size(), " scales", scales.empty() ? "" : " from " + number(scales[0]), "."));
  }
  if (scales.size() > 1 &&
      (type.shape.empty() || type.shape[0] != Dim(static_cast<int64_t>(scales.size())) || out.zero_point != 0)) {
    fail(node, "quant_c2",
         text("several scales must be one for each index of axis 0, with zero point 0; got ", scales.size(),
              " scales and zero point ", out.zero_point, " for ", to_string(type.shape), "."));
  }
  if (type.dtype == DType::i8 && (out.zero_point < -128 || out.zero_point > 127))
    fail(node, "quant_c3", text("the zero point of i8 must be in [-128, 127]; got ", out.zero_point, "."));
  return out;
}

}  // namespace

Attrs quant_attrs(const Quant& quant) {
  Attrs out{{std::string(kQuantScale), quant.scales}};
  if (quant.zero_point != 0) out.emplace(kQuantZero, Dim(quant.zero_point));
  return out;
}

std::string to_string(const Type& type) {
  std::string out(dtype_name(type.dtype));
  if (type.quant) {
    out += "{";
    for (size_t k = 0; k < type.quant->scales.size(); ++k) out += (k ? "," : "") + number(type.quant->scales[k]);
    if (type.quant->zero_point != 0) out += ":" + std::to_string(type.quant->zero_point);
    out += "}";
  }
  return out + to_string(type.shape);
}

std::vector<Type> infer_types(const Node& node) {
  std::vector<Type> types = node.op().infer(node);
  const bool stated = node.attrs().contains(kQuantScale);
  for (Type& type : types) {
    type.quant.reset();  // a copy of an input's type says nothing of the result's scale
    if (!is_integer(type.dtype)) continue;
    if (stated) {
      type.quant = quant_of(node, type);
      continue;
    }
    std::vector<const Type*> operands;  // that the result may take its scale from
    for (const Value* input : node.inputs()) {
      if (input && input->dtype() == type.dtype) operands.push_back(&input->type());
    }
    const auto quantized = std::find_if(operands.begin(), operands.end(), [](const Type* o) { return o->quant; });
    if (quantized == operands.end()) continue;
    const std::optional<Quant>& quant = (*quantized)->quant;
    const bool alike = std::all_of(operands.begin(), operands.end(), [&](const Type* o) { return o->quant == quant; });
    if (!node.op().has(Trait::movement) || quant->scales.size() > 1 || !alike) {
      fail(node, "quant_c4",
           text("the result of quantized operands must state its scale; got ", to_string(**quantized),
                " and no attribute ", kQuantScale, "."));
    }
    type.quant = quant;
  }
  return types;
}

const Tensor& Evaluation::input(size_t index) const {
  HETNN_ASSERT(has(index), describe(node), " reads absent input ", index);
  return *inputs[index];
}

std::vector<int64_t> Evaluation::output_shape(size_t index) const {
  return evaluate(node.output(index)->shape(), bindings);
}

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  auto at = std::find_if(attrs.begin(), attrs.end(), [&](const AttrDef& d) { return d.name == attr; });
  if (at != attrs.end()) return &*at;
  const auto* quant =
      std::find_if(std::begin(kQuantAttrs), std::end(kQuantAttrs), [&](const AttrDef& d) { return d.name == attr; });
  return quant == std::end(kQuantAttrs) ? nullptr : quant;
}

int OpDef::input_index(std::string_view input) const {
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].name == input) return static_cast<int>(k);
  }
  return -1;
}

OpTable& OpTable::global() {
  static OpTable table;
  return table;
}

void OpTable::add(const OpDef& def) {
  HETNN_ASSERT(def.infer != nullptr, "operator ", def.name, " has no shape inference");
  HETNN_ASSERT(by_name_.emplace(def.name, def).second, "operator ", def.name, " is defined twice");
}

const OpDef* OpTable::find(std::string_view name) const {
  auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &at->second;
}

const OpDef& OpTable::get(std::string_view name) const {
  if (const OpDef* def = find(name)) return *def;
  std::vector<std::string_view> names;
  for (const auto& [candidate, def] : by_name_) names.push_back(candidate);
  const std::vector<std::string_view> closest = nearest_names(name, std::move(names), 1);
  throw InvalidModel(text(
      "there is no operator '", name, "'. ",
      closest.empty() ? std::string("The operator table is empty")
                      : text("Did you mean '", closest.front(), "'? The operator table of the documentation lists all"),
      "."));
}

std::vector<const OpDef*> OpTable::all() const {
  std::vector<const OpDef*> out;
  for (const auto& [name, def] : by_name_) out.push_back(&def);
  return out;
}

}  // namespace hetnn::ir
