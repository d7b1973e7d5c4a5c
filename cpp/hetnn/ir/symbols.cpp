// Where the symbols of a graph have their values from.
#include "hetnn/ir/symbols.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace hetnn::ir {

std::map<std::string, Node*, std::less<>> definers(const Graph& graph) {
  std::map<std::string, Node*, std::less<>> out;
  for (Node* node : graph.nodes()) {
    for (std::string& symbol : ops::defined_symbols(node->call())) out.emplace(std::move(symbol), node);
  }
  return out;
}

std::vector<Symbol> free_symbols(const Graph& graph) {
  std::vector<Symbol> out = graph.symbols;
  const auto defined = definers(graph);
  std::erase_if(out, [&](const Symbol& symbol) { return defined.contains(symbol.name); });
  return out;
}

void drop_unused_symbols(Graph& graph) {
  std::set<std::string> used;
  for (const Value* input : graph.inputs()) {
    for (const Dim& dim : input->shape()) dim.collect_symbols(used);
  }
  for (const Node* node : graph.nodes()) ops::collect_symbols(node->call(), used);
  std::erase_if(graph.symbols, [&](const Symbol& symbol) { return !used.contains(symbol.name); });
}

bool raise_to(int64_t least, const std::vector<Dim>& sizes, const Bindings& most, Bindings& values) {
  constexpr int kMostDoublings = 24;
  Bindings raised = values;
  for (int k = 0; k < kMostDoublings; ++k) {
    std::set<std::string> small;
    for (const Dim& size : sizes) {
      if (!size.is_static() && size.evaluate(raised) < least) size.collect_symbols(small);
    }
    if (small.empty()) {
      values = std::move(raised);
      return true;
    }
    for (const std::string& symbol : small) {
      const auto at = most.find(symbol);
      const int64_t end = at == most.end() ? std::numeric_limits<int64_t>::max() : at->second;
      raised[symbol] = std::min(end, std::max<int64_t>(2 * raised[symbol], 1));
    }
  }
  return false;
}

void raise_hints(Graph& graph) {
  std::vector<Dim> sizes;
  for (const Node* node : graph.nodes()) {
    for (const Value* value : node->outputs()) sizes.insert(sizes.end(), value->shape().begin(), value->shape().end());
  }
  Bindings hints = graph.hints(), most;
  for (const Symbol& symbol : graph.symbols) most[symbol.name] = symbol.max;
  if (!raise_to(1, sizes, most, hints)) raise_to(0, sizes, most, hints);
  for (Symbol& symbol : graph.symbols) symbol.hint = hints.at(symbol.name);
}

}  // namespace hetnn::ir
