// Where the symbols of a graph have their values from.
#include "hetnn/ir/symbols.h"

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

}  // namespace hetnn::ir
