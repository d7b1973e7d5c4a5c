// Pass: nodes on f32 compute in f16 or bf16 instead.
#pragma once

#include <set>
#include <string>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// Gives every node on f32 but those of `kept` a twin on `dtype`: what it reads is cast first (constants when folding),
/// what it writes is cast back for those who read f32. Inputs and outputs of the graph keep their types, and so do
/// nodes that have no such form: conversions, loops, operators that say an element type. The number of nodes replaced.
size_t compute_narrow(ir::Graph& graph, DType dtype, const std::set<std::string, std::less<>>& kept);

}  // namespace hetnn::passes
