// The body of a loop as a graph of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::ir {

/// The body of a node that repeats calls. Its inputs are those of the body in order, without the constants that are the
/// same in every round: they are constants here. Behind them stand empty ones, an i8[n] for each symbol n of `around`
/// that the body reads and no shape of its inputs gives. Outputs are what the body gives.
Graph body_graph(const Graph& around, const Node& loop);

/// The same with every call, without outputs, and its values by their numbers in the body's text.
struct NumberedBody {
  Graph graph;
  std::vector<Value*> values;
};
NumberedBody numbered_body(const Graph& around, const Node& loop);

/// Whether input `index` of such a node is a constant of its body's graph.
bool is_constant_of_body(const Node& loop, size_t index);

}  // namespace hetnn::ir
