// A plan: the answer to a problem, and the check that it is one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetnn/plan/partition/problem/problem.h"

namespace hetnn::plan {

/// A list of nodes for every subgraph, one behind the other: a plan may have a million subgraphs.
struct NodeLists {
  /// That of subgraph s is nodes[begin[s] .. begin[s + 1]).
  std::vector<int32_t> begin = {0};
  std::vector<int32_t> nodes;

  size_t size() const { return begin.size() - 1; }
  std::span<const int32_t> operator[](size_t s) const { return {nodes.data() + begin[s], nodes.data() + begin[s + 1]}; }
};

/// Nodes of one device that run in one visit; the plan lists them.
struct PartitionSubgraph {
  int32_t device = 0;
  /// Launch and node times.
  double predicted_us = 0;
  /// Position in the overlapped schedule, where subgraphs of different devices run at the same time.
  double start_us = 0;
  double finish_us = 0;
};

/// A value that moves between devices: once per other device that reads it.
struct PartitionCrossing {
  int32_t node = 0;
  int32_t from_device = 0;
  int32_t to_device = 0;
  double bytes = 0;
  double transfer_us = 0;
};

/// One whole plan the `cost` strategy weighed.
struct PartitionCandidate {
  std::string name;
  double cost_us = 0;
};

/// A soft pin that could not be kept, a node moved for a budget or by a repair: one sentence each.
struct PartitionNote {
  int32_t node = -1;
  std::string text;
};

struct PartitionResult {
  std::vector<int32_t> device_of;
  std::vector<int32_t> subgraph_of;
  /// In an order in which they can run one after the other.
  std::vector<PartitionSubgraph> subgraphs;
  /// The nodes of each subgraph in an order in which they can run; the producers outside whose values it reads,
  /// ascending; its nodes whose values are read elsewhere or by nobody, ascending. Indices into the problem.
  NodeLists nodes, inputs, outputs;
  std::vector<PartitionCrossing> crossings;
  /// Node times, launches and transfers, one after the other.
  double cost_us = 0;
  /// Time from start to end when devices work at the same time; never above cost_us.
  double makespan_us = 0;
  /// Per device: the fewest subgraphs these colours allow.
  std::vector<int32_t> lower_bound_subgraphs;
  /// `cost` only: the minimum cut without launches (or what alpha-expansion reached), a proven lower bound on the cost
  /// of every plan, and every candidate with its cost. Negative where not computed.
  double cut_us = -1;
  double lower_bound_us = -1;
  std::vector<PartitionCandidate> candidates;
  std::vector<PartitionNote> notes;
  /// Wall time of planning, the check of the plan included.
  double plan_us = 0;
};

/// Proves the invariants of a plan from the problem alone: every node once and on a device that supports it, subgraphs
/// in a valid order, crossings and interfaces exactly those of the edges, no export of what may not be exported,
/// connected subgraphs where demanded, budgets and hard pins kept, cost and schedule right. InternalError naming the
/// first violation.
void check_partition(const Problem& problem, const PartitionResult& result);

}  // namespace hetnn::plan
