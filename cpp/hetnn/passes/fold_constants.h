// Evaluates nodes whose inputs are all constant, by the operators' reference meanings.
#pragma once

#include "hetnn/ir/graph.h"
#include "hetnn/ir/verify.h"

namespace hetnn::passes {

struct FoldConstantsOptions {
  /// A node whose outputs hold more bytes than this and than its inputs stays: it is cheaper to compute than to store.
  int64_t max_bytes = ir::kFoldLimitBytes;
  /// Whether a node that writes a graph output may become a constant.
  bool outputs = true;
  /// Whether integers that stand for reals become these.
  bool dequantized = true;
};

/// Replaces every such node of static shape by constants. Nodes without a C++ counterpart of their element type stay.
/// Returns the number of nodes folded.
size_t fold_constants(ir::Graph& graph, const FoldConstantsOptions& options = {});

}  // namespace hetnn::passes
