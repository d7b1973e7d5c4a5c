// Questions asked of graphs, and copying.
#include "hetnn/ir/graph.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"

namespace hetnn::ir {

namespace {
constexpr std::string_view kStages[] = {"imported", "canonical", "legal", "placed", "cut", "fused", "planned"};
}
std::string_view stage_name(Stage stage) { return kStages[static_cast<size_t>(stage)]; }
std::optional<Stage> stage_from_name(std::string_view name) {
  for (size_t k = 0; k < std::size(kStages); ++k) {
    if (kStages[k] == name) return static_cast<Stage>(k);
  }
  return std::nullopt;
}

bool Node::is_called(std::string_view name) const {
  return name == this->name() || name == loc().scope ||
         std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

Graph Graph::clone() const {
  Graph copy(name_);
  copy.symbols = symbols;
  copy.mutations = mutations;
  Rewriter rewriter(copy);
  std::map<const Value*, Value*> twin;
  for (const auto& input : inputs_) twin[input.get()] = rewriter.add_input(input->name(), input->type());
  for (const Node* node : nodes()) rewriter.copy(*node, twin);
  for (size_t k = 0; k < outputs_.size(); ++k) rewriter.add_output(twin.at(outputs_[k]), output_names[k]);
  copy.stage = stage;
  return copy;
}

Bindings Graph::hints() const {
  Bindings out;
  for (const Symbol& symbol : symbols) out[symbol.name] = symbol.hint;
  return out;
}

std::vector<Value*> Graph::inputs() const {
  std::vector<Value*> out;
  for (const auto& input : inputs_) out.push_back(input.get());
  return out;
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

Value* Graph::find_value(std::string_view name) const {
  auto at = names_.find(name);
  return at == names_.end() ? nullptr : at->second;
}

std::string Graph::unique_name(std::string_view wanted) {
  std::string name(wanted.empty() ? "v" : wanted);
  std::replace(name.begin(), name.end(), '\0', '_');  // C programs read names too
  if (!names_.contains(name)) return name;
  for (size_t k = ++suffixes_[name];; k = ++suffixes_[name]) {
    std::string numbered = name + "_" + std::to_string(k);
    if (!names_.contains(numbered)) return numbered;
  }
}

}  // namespace hetnn::ir
