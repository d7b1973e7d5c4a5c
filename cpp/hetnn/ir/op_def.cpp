// The operator table and the small questions asked of an operator's record.
#include "hetnn/ir/op_def.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/ir/graph.h"

namespace hetnn::ir {
namespace {

// Edit distance, to name the operator a misspelt one was meant to be.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string to_string(const Type& type) { return std::string(dtype_name(type.dtype)) + to_string(type.shape); }

const Tensor& Evaluation::input(size_t index) const {
  HETNN_ASSERT(has(index), describe(node), " reads absent input ", index);
  return *inputs[index];
}

std::vector<int64_t> Evaluation::output_shape(size_t index) const {
  return evaluate(node.output(index)->shape(), bindings);
}

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  auto at = std::find_if(attrs.begin(), attrs.end(), [&](const AttrDef& d) { return d.name == attr; });
  return at == attrs.end() ? nullptr : &*at;
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
  std::string_view closest;
  for (const auto& [candidate, def] : by_name_) {
    if (closest.empty() || distance(candidate, name) < distance(closest, name)) closest = candidate;
  }
  throw InvalidModel(text("there is no operator '", name, "'. ",
                          closest.empty()
                              ? std::string("The operator table is empty")
                              : text("Did you mean '", closest, "'? The operator table of the documentation lists all"),
                          "."));
}

std::vector<const OpDef*> OpTable::all() const {
  std::vector<const OpDef*> out;
  for (const auto& [name, def] : by_name_) out.push_back(&def);
  return out;
}

}  // namespace hetnn::ir
