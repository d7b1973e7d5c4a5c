// Launches as commands of a program: buffers, packed weights, layout copies.
#pragma once

#include <functional>
#include <vector>

#include "hetnn/backends/assembler.h"
#include "hetnn/ir/graph.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/program/cpu_code.h"

namespace hetnn::backends::cpu {

struct EmitOptions {
  /// Off: every node is computed by its operator's meaning.
  bool variants = true;
  /// On: of what kernels choose from, what rounds as the operator's own sums do.
  bool deterministic = false;
  /// What kernels are chosen for.
  kernels::Machine machine = kernels::default_machine();
  /// Kernels measure on this machine, for runs by so many threads, what they leave open; 0: they take their defaults.
  int tune_threads = 0;
  /// As of LowerOptions.
  std::function<void(const ir::Value& constant)> spent = {};
};

/// Commands for a fused subgraph whose inputs and outputs have boundary buffers in `assembler`. Where those hold more
/// entries along axis 0 than the graph's values, the commands are those of a block of them.
program::CpuCode emit(const ir::Graph& graph, Assembler& assembler, const EmitOptions& options);

}  // namespace hetnn::backends::cpu
