// The strategies, each from an instance to a draft. Internal to the partitioner.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hetnn/plan/partition/strategies/instance.h"

namespace hetnn::plan {

/// The fastest accelerator for each node, the general processor where there is none. Fastest device of all the others
/// for nodes the general processor cannot run.
std::vector<int32_t> take_all_colours(const Instance& instance);
std::vector<int32_t> cpu_only_colours(const Instance& instance);

/// Makes colours valid (exports, budgets) and draws the fewest subgraphs of them.
Draft draft_from_colours(const Instance& instance, std::vector<int32_t> colour);

Draft plan_topological(const Instance& instance, TopologicalOrder order);

/// How often a set that grows by depth goes through the edges it refused before it is closed.
inline constexpr int32_t kGrowthRounds = 8;
/// How many edges `depth` reads to know depths anew after sets have grown; from then on they stay as they are. Most
/// networks take fewer; a random problem of 100,000 nodes does not, whose plan would take half as long again.
inline constexpr int64_t kDepthReads = int64_t{1} << 17;
Draft plan_depth(const Instance& instance);
/// As the problem gives them, else the longest path to each node, in edges.
std::vector<int32_t> node_depths(const Instance& instance);
/// The order in which nodes become seeds: height (longest path to an output) falling, then depth falling, then number.
/// It is topological, and among nodes that are equally far from the end the ones with a long past come first, so that
/// a short side branch is left for the set that consumes it.
std::vector<int32_t> seed_order(const Instance& instance, const std::vector<int32_t>& depth);
/// The sets of step 2 to 4, before exports are settled: part numbers along the edges.
std::vector<int32_t> depth_parts(const Instance& instance, const std::vector<int32_t>& colour);

struct MergeOptions {
  Criterion criterion = Criterion::support;
  Rings rings = Rings::part;
  Settle settle = Settle::merge;
  Policy policy = Policy::all;
  Measure measure = Measure::nodes;
  double threshold = 0;
};
/// Refused parts remembered for one node, so that a second edge from the same part is not tried again.
inline constexpr size_t kRefusalsKept = 16;
Draft plan_merge(const Instance& instance, const MergeOptions& options);
/// Moves to the general processor each three parts that would close a direct ring: two of one accelerator, an edge
/// apart, and one that reads the first and is read by the second. Those with a node that cannot run there stay.
void send_rings_home(const Instance& instance, const std::vector<int32_t>& part_of, std::vector<int32_t>& colour);
/// Every plan that `merge` can give with every supported node labelled and rings parted, and is not cheaper than
/// another: for each way to settle and each measure the best threshold, and `balance`. Hands out those for which
/// wanted(lower bound of the cost) holds, to be built by the taker, since building may fail.
void for_each_merge_plan(const Instance& instance, const std::function<bool(double)>& wanted,
                         const std::function<void(const std::string&, const std::function<Draft()>&)>& take);
/// Sets of nodes that `merge` never parts, numbered along the edges, when no node is trapped: each runs where all of
/// its nodes are labelled to run, or all of them on the general processor as far as it can run them.
std::vector<int32_t> merge_components(const Instance& instance);
/// The initial subgraphs of `merge`: part numbers along the edges.
std::vector<int32_t> merge_parts(const Instance& instance, const std::vector<int32_t>& label);

/// Node times and transfers of colours that change node by node.
class TransferCounts {
 public:
  /// `colour` must outlive this and is changed by `move`.
  TransferCounts(const Instance& instance, std::vector<int32_t>& colour);
  /// Moves a node to a device it is allowed on; the microseconds that saves. Linear in its inputs and the devices.
  double move(int32_t v, int32_t device);
  /// Whether a consumer of v sits on the device.
  bool reads(int32_t v, int32_t device) const {
    return readers_[static_cast<size_t>(v) * static_cast<size_t>(instance_.device_count) +
                    static_cast<size_t>(device)] > 0;
  }

 private:
  int32_t& readers(int32_t v, int32_t d) {
    return readers_[static_cast<size_t>(v) * static_cast<size_t>(instance_.device_count) + static_cast<size_t>(d)];
  }

  const Instance& instance_;
  std::vector<int32_t>& colour_;
  /// How many consumers of each value sit on each device.
  std::vector<int32_t> readers_;
};

/// What `cost` found out beside the plan.
struct CostTrace {
  double cut_us = -1;
  double lower_bound_us = -1;
  std::vector<PartitionCandidate> candidates;
};
Draft plan_cost(const Instance& instance, bool local_search, CostTrace& trace);

/// From a draft to one whose schedule ends no later than its own or than that of any other strategy at its defaults,
/// where devices work at the same time. The work is bounded by a count.
Draft plan_overlapped(const Instance& instance, Draft start);

}  // namespace hetnn::plan
