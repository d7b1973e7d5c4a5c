// Batches in blocks: where all entries of a batch together leave the caches between layers, a few at a time do not.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/plan/cut.h"
#include "hetnn/target/target.h"

namespace hetnn::plan {

/// Nodes of a subgraph, one behind the other, that run for so many blocks of the batch's entries in turn; 1: for all
/// entries at once.
struct Stretch {
  size_t begin, end;  // half open
  int64_t blocks;
};

/// The subgraph in stretches as its device is predicted to take the least time: one, of all entries at once, unless
/// others are faster by a margin. A batch is what the subgraph's first input has along axis 0; only nodes that compute
/// its entries apart run in blocks (ops/batch.h), and one value goes from a stretch to the next, which no step behind
/// its kernel reads.
std::vector<Stretch> stretches_of(const ir::Graph& graph, const Subgraph& subgraph, const target::Device& device);

/// The graph of such a stretch, taken out of its model (`extract`), for one of its blocks. What has as many entries as
/// its outputs has those of a block; other inputs stay whole.
ir::Graph block_of(const ir::Graph& stretch, int64_t blocks);

}  // namespace hetnn::plan
