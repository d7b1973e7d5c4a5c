// Runs: from a device for every node to the fewest subgraphs those colours allow. Internal to the partitioner.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/strategies/instance.h"

namespace hetnn::plan {

/// Nodes that must share a subgraph: a trapped node and all its consumers. Clusters are numbered in topological order
/// of the graph that has them collapsed. `of` is empty when every node is a cluster by itself.
struct Clusters {
  std::vector<int32_t> of;
  int32_t count = 0;
  std::vector<int32_t> in_begin, in_nodes, out_begin, out_nodes;
};

/// Moves nodes to other devices until every trapped node can share a subgraph with all its consumers without closing a
/// ring, and returns the clusters of the result. A trapped node with a consumer elsewhere (or with none) leaves its
/// device; so do the trapped nodes of clusters that lie on a ring. Linear for each round; every round moves a node.
/// Unsupported when a node that can run nowhere else would have to move.
Clusters settle_exports(const Instance& instance, std::vector<int32_t>& colour);

/// Where a node goes that must leave its device: the general processor, else the fastest device it may be exported
/// from, else one that all its consumers are on; -1 when there is none.
int32_t fallback_device(const Instance& instance, const std::vector<int32_t>& colour, int32_t v);

enum class RunGoal : uint8_t {
  fewest,    ///< the fewest subgraphs
  cheapest,  ///< the least launch cost; of those, the fewest accelerator subgraphs
};

/// Cuts a graph into runs of one colour, each reaching as far as it can; tries each starting colour. For two colours
/// the number of runs is the least possible. Subgraphs of `connected` devices are then split into connected ones.
Draft draw_runs(const Instance& instance, const Clusters& clusters, std::vector<int32_t> colour, RunGoal goal);

/// The same by taking the ready node that stands first in the problem, for comparison.
Draft draw_runs_in_index_order(const Instance& instance, const Clusters& clusters, std::vector<int32_t> colour);

/// Splits the subgraphs of `connected` devices into their connected parts and numbers all of them again.
void split_islands(const Instance& instance, Draft& draft);

/// Per device: the largest number of separate runs of it on any path, which no drawing can go below.
std::vector<int32_t> fewest_subgraphs(const Instance& instance, const std::vector<int32_t>& colour);

}  // namespace hetnn::plan
