// Exact search for an assignment below a capacity.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hetnn/memory/order_fit.h"
#include "hetnn/memory/problem.h"

namespace hetnn::memory {

enum class ExactOutcome { found, infeasible, gave_up };

struct ExactResult {
  ExactOutcome outcome = ExactOutcome::gave_up;
  std::vector<int64_t> offsets;  // when found
  int64_t nodes = 0;
};

/// Depth-first search, for at most 4096 buffers, over canonical assignments: buffers are placed bottom-up, in
/// increasing (offset, rank), each resting on another one or on 0. `rank` orders the candidates of equal offset. Gives
/// up after `max_nodes` placements or when `stop` says so. `infeasible` is a proof.
///
/// Source of the canonical form and of the section bound: Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
/// Hardware-Accelerated Machine Learning", ASPLOS 2023.
ExactResult search_exact(const std::vector<Buffer>& buffers, const ConflictGraph& graph, const std::vector<int>& rank,
                         int64_t capacity_bytes, int64_t max_nodes, const std::function<bool()>& stop);

}  // namespace hetnn::memory
