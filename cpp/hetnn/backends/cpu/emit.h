// Kernel calls as commands of a program: buffers, packed weights, layout copies.
#pragma once

#include "hetnn/backends/assembler.h"
#include "hetnn/ir/graph.h"
#include "hetnn/program/cpu_code.h"

namespace hetnn::backends::cpu {

/// Commands for a fused subgraph whose inputs and outputs have boundary buffers in `assembler`. Kernels
/// measure on this machine, for runs by `tune_threads` threads, what they leave open; not at all when that is 0.
program::CpuCode emit(const ir::Graph& graph, Assembler& assembler, int tune_threads);

/// Makes the node's kernel with plain operands under `bindings`, to see whether it takes the call. Throws what the
/// kernel throws.
void make_trial_kernel(const ir::Node& node, const Bindings& bindings);

}  // namespace hetnn::backends::cpu
