// The `cost` strategy: minimum cuts, every other plan as a candidate, the cheapest by the full objective.
#include <algorithm>

#include "hetnn/plan/partition/expansion.h"
#include "hetnn/plan/partition/group.h"
#include "hetnn/plan/partition/strategies.h"

namespace hetnn::plan {
namespace {

class CostPlanner {
 public:
  CostPlanner(const Instance& instance, CostTrace& trace) : instance_(instance), trace_(trace) {}

  Draft run() {
    std::vector<int32_t> colour = cpu_only_colours(instance_);
    Clusters clusters = settle_exports(instance_, colour);
    const CutWeights plain;
    if (instance_.device_count == 2) {
      trace_.cut_us = expand(instance_, plain, 1, colour);
    }
    consider("cut", colour);
    consider("take-all", take_all_colours(instance_));
    consider("cpu-only", cpu_only_colours(instance_));
    consider("topological order=index", plan_topological(instance_, TopologicalOrder::index));
    return std::move(best_);
  }

 private:
  void consider(const char* name, std::vector<int32_t> colour) {
    const Clusters clusters = settle_exports(instance_, colour);
    consider(name, group_colours(instance_, clusters, std::move(colour), GroupGoal::cheapest));
  }
  void consider(const char* name, Draft draft) {
    const double cost = draft_cost_us(instance_, draft);
    trace_.candidates.push_back({name, cost});
    if (best_cost_ < 0 || cost < best_cost_) {
      best_cost_ = cost;
      best_ = std::move(draft);
    }
  }

  const Instance& instance_;
  CostTrace& trace_;
  Draft best_;
  double best_cost_ = -1;
};

}  // namespace

Draft plan_cost(const Instance& instance, bool local_search, CostTrace& trace) {
  static_cast<void>(local_search);
  return CostPlanner(instance, trace).run();
}

}  // namespace hetnn::plan
