// Asking early for what will be read: nodes of a large graph lie anywhere in memory, and waiting for one at a time
// costs more than all the rest. Internal to the partitioner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/problem/topology.h"

namespace hetnn::plan {

/// Asks for a place that will be read, or written, some steps from now. Always inline, like every function that does
/// nothing else: GCC takes calls of them for calls without effect and drops them.
template <typename T>
[[gnu::always_inline]] inline void prefetch(const T* place) {
  __builtin_prefetch(place);
}

/// In a loop over a list: its element some steps on, or the last.
inline int32_t later(const std::vector<int32_t>& list, size_t k, size_t steps) {
  return list[std::min(k + steps, list.size() - 1)];
}

/// Whether neighbours stand so far apart that the cache will not hold what lies between them. Where they do not, asking
/// early only costs.
inline bool neighbours_are_far(const Topology& graph) {
  constexpr int64_t kNear = 4096;
  int64_t distance = 0;
  for (size_t v = 0; v < graph.node_of.size(); ++v) {
    for (int32_t i = graph.in_begin[v]; i < graph.in_begin[v + 1]; ++i)
      distance += static_cast<int64_t>(v) - graph.in_nodes[static_cast<size_t>(i)];
  }
  return distance > kNear * static_cast<int64_t>(graph.in_nodes.size());
}

}  // namespace hetnn::plan
