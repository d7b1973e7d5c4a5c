// Kernel calls as commands of a program: buffers, packed weights, layout copies.
#pragma once

#include "hetnn/backends/assembler.h"
#include "hetnn/ir/graph.h"
#include "hetnn/program/program.h"

namespace hetnn::backends::cpu {

/// Commands for a fused subgraph whose inputs and outputs have boundary buffers in `assembler`. `tune`:
/// kernels measure on this machine what they leave open.
program::CpuCode emit(const ir::Graph& graph, Assembler& assembler, bool tune);

/// Makes the node's kernel with plain operands under `bindings`, to see whether it takes the call. Throws what the
/// kernel throws.
void make_trial_kernel(const ir::Node& node, const Bindings& bindings);

}  // namespace hetnn::backends::cpu
