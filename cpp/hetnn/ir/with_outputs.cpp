// A graph that returns values from inside it, those that its loops compute in each round among them.
#include "hetnn/ir/with_outputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/ir/body_graph.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/control/loop.h"

namespace hetnn::ir {
namespace {

std::set<std::string> symbols_of(const Graph& graph) {
  std::set<std::string> out;
  for (const Symbol& symbol : graph.symbols) out.insert(symbol.name);
  return out;
}

bool depends_only_on(const Shape& shape, const std::set<std::string>& symbols) {
  std::set<std::string> used;
  for (const Dim& dim : shape) dim.collect_symbols(used);
  return std::ranges::includes(symbols, used);
}

// A size that a run finds, under a name that is not taken.
Dim found_size(Graph& graph) {
  const std::set<std::string> taken = symbols_of(graph);
  for (size_t k = 0;; ++k) {
    const std::string name = text("observed", k);
    if (taken.contains(name)) continue;
    graph.symbols.push_back({.name = name, .min = 0});
    return Dim::symbol(name);
  }
}

// Makes a loop stack further values of its body; what it was gives its uses and names to what it becomes. The new
// outputs, in order.
std::vector<Value*> stack(Rewriter& rewriter, Node* loop, const std::vector<BodyValue>& values) {
  Graph& graph = rewriter.graph();
  Attrs attrs = loop->attrs();
  auto& body = std::get<std::string>(attrs.at("body"));
  auto& stacks = std::get<std::string>(attrs.at("stacks"));
  auto& sizes = std::get<std::vector<Dim>>(attrs.at("sizes"));
  for (const BodyValue& value : values) {
    if (value.type.quant) {
      throw Unsupported(text("'", value.name, "' is within what '", loop->name(),
                             "' repeats, and has integers for reals, which are not kept of every round. Ask for '",
                             loop->name(), "'."));
    }
    body += text(" ", value.number);
    if (!stacks.empty()) stacks += text(" ", dtype_name(value.type.dtype), ":", value.type.shape.size());
    for (const Dim& dim : value.type.shape) sizes.push_back(dim.is_static() ? dim : found_size(graph));
  }
  rewriter.insert_after(loop);
  Node* made = rewriter.create(loop->op().name, loop->inputs(), std::move(attrs), loop->name(), loop->loc());
  const size_t before = loop->outputs().size();
  for (size_t k = 0; k < before; ++k) {
    rewriter.replace_uses(loop->output(k), made->output(k));
    rewriter.rename(made->output(k), loop->output(k)->name());
  }
  rewriter.erase(loop);
  return {made->outputs().begin() + static_cast<ptrdiff_t>(before), made->outputs().end()};
}

}  // namespace

std::vector<RepeatedValue> repeated_values(const Graph& graph) {
  const std::set<std::string> outside = symbols_of(graph);
  std::vector<RepeatedValue> out;
  for (const Node* node : graph.nodes()) {
    if (!ops::is_loop(node->call())) continue;
    for (BodyValue& value : body_values(graph, *node))
      out.push_back({std::move(value.name), node->name(), depends_only_on(value.type.shape, outside)});
  }
  return out;
}

Graph with_outputs(const Graph& graph, const std::vector<std::string>& names) {
  Graph out = graph.clone();
  Rewriter rewriter(out);
  std::map<std::string, std::pair<Node*, BodyValue>> repeated;
  std::vector<Node*> loops;
  const auto is_outside = [&](const std::string& name) { return out.find_value(name) != nullptr; };
  if (!std::ranges::all_of(names, is_outside)) {
    for (Node* node : out.nodes()) {
      if (!ops::is_loop(node->call())) continue;
      loops.push_back(node);
      for (BodyValue& value : body_values(out, *node)) {
        const std::string name = value.name;
        repeated.try_emplace(name, node, std::move(value));
      }
    }
  }
  std::map<Node*, std::vector<BodyValue>> wanted;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second || is_outside(name)) continue;
    const auto at = repeated.find(name);
    if (at == repeated.end()) throw InvalidModel(text("the graph has no value '", name, "'."));
    wanted[at->second.first].push_back(at->second.second);
  }
  std::map<std::string, Value*> made;
  for (Node* loop : loops) {
    const auto at = wanted.find(loop);
    if (at == wanted.end()) continue;
    const std::vector<Value*> values = stack(rewriter, loop, at->second);
    for (size_t k = 0; k < values.size(); ++k) made[at->second[k].name] = values[k];
  }
  for (const std::string& name : names) {
    const auto at = made.find(name);
    rewriter.add_output(at == made.end() ? out.find_value(name) : at->second, "observed " + name);
  }
  return out;
}

}  // namespace hetnn::ir
