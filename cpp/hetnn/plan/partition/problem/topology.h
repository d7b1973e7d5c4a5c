// The nodes of a problem in topological order, and both directions of its edges by place in that order. Internal to the
// partitioner.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/problem/problem.h"

namespace hetnn::plan {

/// Positions are places in the order. Edges are without duplicates; every list of neighbours ascends.
struct Topology {
  /// Position -> index in the problem. The problem's own order where that is topological; else nodes stand in the order
  /// in which their last input is met, those without inputs first.
  std::vector<int32_t> node_of;
  std::vector<int32_t> in_begin, in_nodes, out_begin, out_nodes;
};

/// `cycle` receives the nodes of one cycle where there is one; the topology is then incomplete.
Topology sort_graph(const Problem& problem, std::vector<int32_t>& cycle);

/// Validates a problem and sorts it.
Topology validated_topology(const Problem& problem);

}  // namespace hetnn::plan
