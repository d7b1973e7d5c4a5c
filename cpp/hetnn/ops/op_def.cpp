// The operator table and the small questions asked of an operator's record.
#include "hetnn/ops/op_def.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/base/nearest_names.h"

namespace hetnn::ops {
namespace {

const AttrDef kQuantDefs[] = {
    {kQuantScale, AttrKind::reals, std::nullopt,
     "scale of the result's integers; one, or one for each index of an axis"},
    {kQuantZero, AttrKind::integers, std::nullopt, "the integer that stands for 0; one, or one for each scale"},
    {kQuantAxis, AttrKind::integer, std::nullopt, "the axis of several scales"},
    {kQuantRounding, AttrKind::string, std::nullopt,
     "double, single or half_even_fp32: integers are computed with as an NPU of that rounding does"},
};

}  // namespace

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  auto at = std::find_if(attrs.begin(), attrs.end(), [&](const AttrDef& d) { return d.name == attr; });
  if (at != attrs.end()) return &*at;
  const auto* quant = std::ranges::find(kQuantDefs, attr, &AttrDef::name);
  return quant == std::end(kQuantDefs) ? nullptr : quant;
}

int OpDef::input_index(std::string_view input) const {
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].name == input) return static_cast<int>(k);
  }
  return -1;
}

#define HETNN_OP(name) OpDef define_##name();
#include "hetnn/ops/all_ops.inc"
#undef HETNN_OP

const OpTable& OpTable::global() {
  static const OpTable table = [] {
    OpTable out;
#define HETNN_OP(name) out.add(define_##name());
#include "hetnn/ops/all_ops.inc"
#undef HETNN_OP
    return out;
  }();
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

}  // namespace hetnn::ops
