// A graph that returns values from inside it, those that its loops compute in each round among them.
#pragma once

#include <string>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::ir {

/// A value that the body of a loop of the graph computes, or one of a loop within it, by its name in the body's graph.
struct RepeatedValue {
  std::string name, loop;  // the loop that is the graph's own
  bool keeps_shape;        // its sizes are the same in every round, whatever the values are
};
std::vector<RepeatedValue> repeated_values(const Graph& graph);

/// A copy of the graph that returns these values too, behind its own outputs. One of a loop's body has all its rounds,
/// along a new first axis, however deep the loop is: those of a loop within another stand behind one another, in the
/// order in which they ran. InvalidModel for a name that is none; Unsupported for one within a loop that has integers
/// for reals.
Graph with_outputs(const Graph& graph, const std::vector<std::string>& names);

}  // namespace hetnn::ir
