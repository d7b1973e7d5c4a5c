// Sizes that depend on values: symbols to which calls give values when they run.
#include "hetnn/ops/sizes.h"

#include "hetnn/base/error.h"

namespace hetnn::ops {
namespace {

std::vector<Dim> dims_of(const Attr& attr) {
  if (const auto* dim = std::get_if<Dim>(&attr)) return {*dim};
  const auto* dims = std::get_if<std::vector<Dim>>(&attr);
  return dims ? *dims : std::vector<Dim>();
}

}  // namespace

bool defines(const AttrDef& def) {
  if (!def.default_value) return false;
  const std::vector<Dim> dims = dims_of(*def.default_value);
  return !dims.empty() && !dims.front().is_static();
}

std::string symbol_name(const Dim& dim) {
  std::set<std::string> used;
  if (!dim.is_static()) dim.collect_symbols(used);
  return used.size() == 1 && dim == Dim::symbol(*used.begin()) ? *used.begin() : std::string();
}

std::vector<std::string> defined_symbols(const Call& call) {
  std::vector<std::string> out;
  for (const AttrDef& def : call.op->attrs) {
    const auto at = defines(def) ? call.attrs.find(def.name) : call.attrs.end();
    if (at == call.attrs.end()) continue;
    for (const Dim& dim : dims_of(at->second)) {
      if (!dim.is_static()) out.push_back(symbol_name(dim));
    }
  }
  return out;
}

void collect_needed_symbols(const Call& call, std::set<std::string>& symbols) {
  for (const Operand& input : call.inputs) {
    if (!input.type) continue;
    for (const Dim& dim : input.type->shape) dim.collect_symbols(symbols);
  }
  for (const auto& [name, attr] : call.attrs) {
    const AttrDef* def = call.op->find_attr(name);
    if (def && defines(*def)) continue;
    for (const Dim& dim : dims_of(attr)) dim.collect_symbols(symbols);
  }
}

void check_defined(const Call& call) {
  for (const AttrDef& def : call.op->attrs) {
    const auto at = defines(def) ? call.attrs.find(def.name) : call.attrs.end();
    if (at == call.attrs.end()) continue;
    std::set<std::string> names;
    const std::vector<Dim> dims = dims_of(at->second);
    for (const Dim& dim : dims) {
      if (dim.is_static() || (!symbol_name(dim).empty() && names.insert(symbol_name(dim)).second)) continue;
      fail(call, "",
           text("attribute '", def.name,
                "' must name symbols to which the call gives values, or sizes that they must have; got ",
                to_string(dims), ". Name each symbol once."));
    }
  }
}

void define(const Evaluation& e, std::string_view attr, std::span<const int64_t> values) {
  const std::vector<Dim> symbols = dims_of(e.call.attrs.find(attr)->second);
  bool fits = symbols.size() == values.size();
  for (size_t k = 0; fits && k < values.size(); ++k) fits = !symbols[k].is_static() || symbols[k] == Dim(values[k]);
  if (!fits) {
    fail(e.call, "",
         text("the values give the shape ", to_string(Shape(values.begin(), values.end())), "; the model declares ",
              to_string(symbols), ". Give other values, or export the model with the shape that they give."));
  }
  auto* found = dynamic_cast<FoundResults*>(&e.results);
  for (size_t k = 0; k < values.size(); ++k) {
    if (symbols[k].is_static()) continue;
    HETNN_ASSERT(found, describe(e.call), " runs where nobody takes the sizes that it finds");
    found->define(symbol_name(symbols[k]), values[k]);
  }
}

void check_range(const Call& call, const Symbol& symbol, int64_t value) {
  if (value >= symbol.min && value <= symbol.max) return;
  fail(call, "",
       text("the size '", symbol.name, "' must be in [", symbol.min, ", ", symbol.max,
            "]; the values that it depends on give ", value, ". Change them, or export the model with a wider range."));
}

}  // namespace hetnn::ops
