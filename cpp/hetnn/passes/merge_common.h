// Common subexpressions: nodes that compute the same from the same are computed once.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// Redirects readers of every node that repeats an earlier one (operator, inputs, attributes; constants by value) to
/// the earlier one, and erases the repetition. Returns the number of nodes erased.
size_t merge_common(ir::Graph& graph);

}  // namespace hetnn::passes
