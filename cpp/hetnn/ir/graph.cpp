// Questions asked of graphs and nodes, copying, and the wording of messages about nodes.
#include "hetnn/ir/graph.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"

namespace hetnn::ir {

std::string to_string(const Loc& loc) {
  if (!loc.file.empty()) return loc.line > 0 ? text(loc.file, ":", loc.line) : loc.file;
  return loc.scope;
}

const std::string& Node::name() const { return outputs_.empty() ? wanted_name_ : outputs_.front()->name(); }

const Attr& Node::attr(std::string_view name, AttrKind kind) const {
  auto at = attrs_.find(name);
  HETNN_ASSERT(at != attrs_.end(), describe(*this), " has no attribute ", name);
  HETNN_ASSERT(attr_kind(at->second) == kind, describe(*this), " attribute ", name, " is of kind ",
               attr_kind_name(attr_kind(at->second)));
  return at->second;
}

bool Node::flag(std::string_view name) const { return std::get<bool>(attr(name, AttrKind::boolean)); }
Dim Node::integer(std::string_view name) const { return std::get<Dim>(attr(name, AttrKind::integer)); }
double Node::real(std::string_view name) const { return std::get<double>(attr(name, AttrKind::real)); }
const std::string& Node::string(std::string_view name) const {
  return std::get<std::string>(attr(name, AttrKind::string));
}
DType Node::dtype(std::string_view name) const { return std::get<DType>(attr(name, AttrKind::dtype)); }
const std::vector<Dim>& Node::integers(std::string_view name) const {
  return std::get<std::vector<Dim>>(attr(name, AttrKind::integers));
}
const std::vector<double>& Node::reals(std::string_view name) const {
  return std::get<std::vector<double>>(attr(name, AttrKind::reals));
}
const Tensor& Node::tensor(std::string_view name) const { return std::get<Tensor>(attr(name, AttrKind::tensor)); }

const Tensor* Node::constant_input(size_t index) const {
  const Value* value = input(index);
  if (!value || !value->producer() || !value->producer()->is_constant()) return nullptr;
  return &value->producer()->tensor("value");
}

void collect_symbols(const Node& node, std::set<std::string>& symbols) {
  const auto collect = [&](const std::vector<Dim>& dims) {
    for (const Dim& dim : dims) dim.collect_symbols(symbols);
  };
  for (const Value* input : node.inputs()) {
    if (input) collect(input->shape());
  }
  for (const Value* output : node.outputs()) collect(output->shape());
  for (const auto& [name, attr] : node.attrs()) {
    if (const auto* dim = std::get_if<Dim>(&attr)) dim->collect_symbols(symbols);
    if (const auto* dims = std::get_if<std::vector<Dim>>(&attr)) collect(*dims);
  }
}

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

Graph Graph::clone() const {
  Graph copy(name_);
  copy.symbols = symbols;
  copy.mutations = mutations;
  Rewriter rewriter(copy);
  std::map<const Value*, Value*> twin;
  for (const auto& input : inputs_) twin[input.get()] = rewriter.add_input(input->name(), input->type());
  for (const Node* node : nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(input ? twin.at(input) : nullptr);
    Node* made = rewriter.create(node->op().name, std::move(inputs), node->attrs(), {}, node->loc());
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      rewriter.rename(made->output(k), node->output(k)->name());
      twin[node->output(k)] = made->output(k);
    }
    made->device = node->device;
    made->subgraph = node->subgraph;
    made->group = node->group;
  }
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
  std::string name(wanted);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  if (name.empty()) name = "v";
  if (!names_.contains(name)) return name;
  for (size_t k = ++suffixes_[name];; k = ++suffixes_[name]) {
    std::string numbered = name + "_" + std::to_string(k);
    if (!names_.contains(numbered)) return numbered;
  }
}

std::string describe(const Node& node) {
  const std::string& called = node.loc().scope.empty() ? node.name() : node.loc().scope;
  return text(node.op().name, " '", called, "'");
}

void fail(const Node& node, std::string_view label, const std::string& message) {
  const std::string where = to_string(node.loc());
  throw InvalidModel(text(describe(node), ": ", message, label.empty() ? "" : text(" (", label, ")"),
                          where.empty() ? "" : text("\n  at ", where)));
}

}  // namespace hetnn::ir
