// One node as a graph of its own, to try things on.
#pragma once

#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// A graph of `node` alone: constant inputs stay constants, other inputs become the graph's, its outputs too.
ir::Graph isolate(const ir::Node& node, const std::vector<Symbol>& symbols);

}  // namespace hetnn::passes
