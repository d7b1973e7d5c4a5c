// Where the symbols of a graph have their values from.
//
// The shape of an input gives a symbol its value, or one node defines it: an attribute of the node names it
// (`nonzero(%x) {count = u}`), and its value comes out when the node runs. Nodes whose attributes hold the symbol stand
// behind that node, though they may read nothing of it; it lives while one of them does. A value outside the symbol's
// range is InvalidModel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ir {

/// The nodes that define symbols, by symbol.
std::map<std::string, Node*, std::less<>> definers(const Graph& graph);

/// The symbols that no node defines: those of the inputs' shapes.
std::vector<Symbol> free_symbols(const Graph& graph);

/// Takes away the symbols that neither an input's shape nor a node has: no run could say their values.
void drop_unused_symbols(Graph& graph);

/// Doubles the values of symbols, up to what is the most of each, until no size is less than `least`. False, and
/// nothing is changed, where that does not help.
bool raise_to(int64_t least, const std::vector<Dim>& sizes, const Bindings& most, Bindings& values);

/// Doubles the sizes that are taken as an example where a value would be empty, or else where one would have a negative
/// size: of what windows cut off an axis too little may be left. They stay where that does not help.
void raise_hints(Graph& graph);

}  // namespace hetnn::ir
