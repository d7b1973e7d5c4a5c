// The strategies, each from an instance to a draft. Internal to the partitioner.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hetnn/plan/partition/instance.h"

namespace hetnn::plan {

/// The fastest accelerator for each node, the general processor where there is none. Fastest device of all the others
/// for nodes the general processor cannot run.
std::vector<int32_t> take_all_colours(const Instance& instance);
std::vector<int32_t> cpu_only_colours(const Instance& instance);

/// Makes colours valid (exports, budgets) and groups them with the fewest subgraphs.
Draft draft_from_colours(const Instance& instance, std::vector<int32_t> colour);

Draft plan_topological(const Instance& instance, TopologicalOrder order);

/// What `cost` found out beside the plan.
struct CostTrace {
  double cut_us = -1;
  double lower_bound_us = -1;
  std::vector<PartitionCandidate> candidates;
};
Draft plan_cost(const Instance& instance, bool local_search, CostTrace& trace);

}  // namespace hetnn::plan
