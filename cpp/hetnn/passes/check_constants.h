// What no run can do, told when compiling: constants that say where, and lead outside.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// Checks the constants of every node that computes something in every run: those of an empty result are never looked
/// at. What depends on an open size is left to the run. InvalidModel by the operator's own check.
void check_constants(const ir::Graph& graph);

}  // namespace hetnn::passes
