// Partitioning: from a planning problem to an ordered list of subgraphs, by any strategy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/plan/partition/problem/plan.h"
#include "hetnn/plan/partition/problem/problem.h"

namespace hetnn::plan {

enum class Strategy : uint8_t { topological, depth, merge, cost, take_all, cpu_only };
enum class TopologicalOrder : uint8_t { min, index };
enum class Criterion : uint8_t { support, simd };
enum class Rings : uint8_t { part, merge };
enum class Settle : uint8_t { merge, trim };
enum class Policy : uint8_t { all, largest, threshold, largest_threshold, balance };
enum class Measure : uint8_t { nodes, macs, time };

struct Options {
  Strategy strategy = Strategy::cost;
  /// topological: `min` stays on a colour as long as it can; `index` takes the lowest-numbered ready node.
  TopologicalOrder order = TopologicalOrder::min;
  /// merge: which nodes are labelled for an accelerator: all that it supports, or of these those that suit SIMD.
  Criterion criterion = Criterion::support;
  /// merge: two subgraphs of an accelerator, an edge apart, that a third joins, reading one and read by the other, stay
  /// parted; or all three become one of the general processor.
  Rings rings = Rings::part;
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

/// Plans `problem`. The same arguments give the same plan. An empty problem gives an empty plan. Every plan is checked
/// (`check_partition`) before it is returned.
/// Errors: InvalidModel as `validate` and for options that make no sense; Unsupported for an impossible hard pin, a
/// node nobody may run and a strict device that cannot run everything; DoesNotFit for a budget that cannot be met.
PartitionResult partition(const Problem& problem, const Options& options = {});

/// The figures of the same plan where node times of the problem have changed since: of subgraphs, in all, and the
/// schedule. Bounds that were proved of the old times are at most the new cost.
void price_again(const Problem& problem, PartitionResult& result);

/// A backend's answer to one subgraph: accepted, or why not.
struct Refusal {
  bool refused = false;
  std::string reason;
  /// The nodes at fault; empty when the subgraph as a whole is too much.
  std::vector<int32_t> nodes;
};
/// Asked for each accelerator subgraph of a plan.
using Backend = std::function<Refusal(const PartitionResult& plan, int32_t subgraph)>;

/// Plans, asks the backend about every subgraph of an accelerator, and plans again without what it refused: nodes at
/// fault leave that device; a subgraph refused as a whole is split in two along its order, and a single node leaves.
/// The notes of the result say what happened. DoesNotFit when nodes that can run nowhere else are refused.
PartitionResult partition_with_repair(const Problem& problem, const Options& options, const Backend& backend);

/// "cost", "take-all", ... and back; InvalidModel listing the names there are.
std::string_view strategy_name(Strategy strategy);
Strategy strategy_from_name(std::string_view name);

}  // namespace hetnn::plan
