// Partitioning: from a planning problem to an ordered list of subgraphs, by any strategy.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/plan/partition/problem.h"

namespace hetnn::plan {

enum class Strategy : uint8_t { topological, depth, merge, cost, take_all, cpu_only };
enum class TopologicalOrder : uint8_t { min, index };
enum class Settle : uint8_t { merge, trim };
enum class Policy : uint8_t { all, largest, threshold, largest_threshold, balance };
enum class Measure : uint8_t { nodes, macs, time };

struct Options {
  Strategy strategy = Strategy::cost;
  /// topological: `min` stays on a colour as long as it can; `index` takes the lowest-numbered ready node.
  TopologicalOrder order = TopologicalOrder::min;
  /// merge: what moves to the general processor when a subgraph ends in a node that may not be exported.
  Settle settle = Settle::merge;
  /// merge: which accelerator-capable subgraphs run on the accelerator, and how their amount of compute is measured.
  Policy policy = Policy::all;
  Measure measure = Measure::nodes;
  /// merge, with a threshold policy: a subgraph stays only when its amount of compute exceeds this.
  double threshold = 0;
  /// cost: improve the best candidate by moving nodes and dissolving subgraphs.
  bool local_search = true;
  /// Not empty: every node must run on this device; Unsupported lists all that cannot.
  std::string strict;
  /// cost: shorten the schedule in which devices work at the same time, instead of the sum of all times.
  bool overlap = false;
};

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

/// Plans `problem`. The same arguments give the same plan. An empty problem gives an empty plan. Every plan is checked
/// (`check_partition`) before it is returned.
/// Errors: InvalidModel as `validate` and for options that make no sense; Unsupported for an impossible hard pin, a
/// node nobody may run and a strict device that cannot run everything; DoesNotFit for a budget that cannot be met.
PartitionResult partition(const Problem& problem, const Options& options = {});

/// The objective: node times + launches + one transfer per value and other device that reads it.
double partition_cost_us(const Problem& problem, const PartitionResult& result);

/// Proves the invariants of a plan from the problem alone: every node once and on a device that supports it, subgraphs
/// in a valid order, crossings and interfaces exactly those of the edges, no export of what may not be exported,
/// connected subgraphs where demanded, budgets and hard pins kept, cost and schedule right. InternalError naming the
/// first violation.
void check_partition(const Problem& problem, const PartitionResult& result);

/// "cost", "take-all", ... and back; InvalidModel listing the names there are.
std::string_view strategy_name(Strategy strategy);
Strategy strategy_from_name(std::string_view name);

}  // namespace hetnn::plan
