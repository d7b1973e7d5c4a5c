// Where the symbols of a graph have their values from.
#include "hetnn/ir/symbols.h"

#include <algorithm>
#include <set>

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

namespace {

// The symbols of sizes that are less than that under the hints.
std::set<std::string> symbols_below(int64_t least, const Graph& graph) {
  const Bindings hints = graph.hints();
  std::set<std::string> out;
  for (const Node* node : graph.nodes()) {
    for (const Value* value : node->outputs()) {
      for (const Dim& dim : value->shape()) {
        if (!dim.is_static() && dim.evaluate(hints) < least) dim.collect_symbols(out);
      }
    }
  }
  return out;
}

// Whether all sizes could be raised to `least`; else the hints are as before.
bool raise_to(int64_t least, Graph& graph) {
  constexpr int kMostDoublings = 24;
  const std::vector<Symbol> before = graph.symbols;
  for (int k = 0; k < kMostDoublings; ++k) {
    const std::set<std::string> small = symbols_below(least, graph);
    if (small.empty()) return true;
    for (Symbol& symbol : graph.symbols) {
      if (small.contains(symbol.name)) symbol.hint = std::min(symbol.max, std::max<int64_t>(2 * symbol.hint, 1));
    }
  }
  graph.symbols = before;
  return false;
}

}  // namespace

void raise_hints(Graph& graph) {
  if (!raise_to(1, graph)) raise_to(0, graph);
}

}  // namespace hetnn::ir
