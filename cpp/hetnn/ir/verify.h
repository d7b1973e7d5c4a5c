// Checks that a graph is well formed and keeps the rules of its stage.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::ir {

/// A constant is computed when compiling up to this size; beyond it, when the program runs.
inline constexpr int64_t kFoldLimitBytes = int64_t{64} << 20;

/// Throws InternalError with the broken rule and the node. Rules, each holding from its stage on:
///   imported   nodes in topological order; use lists exact; names unique; attributes as the operator declares them;
///              types as inference gives them; every graph output is a value of the graph.
///   canonical  no dead nodes; no node of static shape whose inputs are all constant, unless it writes an output of the
///              graph, more than kFoldLimitBytes, or a type that the reference cannot compute with (f16, bf16).
///   placed     every node but constants names a device.
///   cut        every node but constants has a subgraph; subgraphs are contiguous in node order and of one device.
///   fused      every node but constants has a launch; a launch lies within one subgraph.
void verify(const Graph& graph);

}  // namespace hetnn::ir
