// The simple colourings and the strategies that follow from them directly.
#include "hetnn/plan/partition/strategies/budget.h"
#include "hetnn/plan/partition/strategies/runs.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

/// The fastest allowed device from `first` on, -1 when there is none.
int32_t fastest_device(const Instance& instance, int32_t v, int32_t first) {
  int32_t best = -1;
  for (int32_t d = first; d < instance.device_count; ++d) {
    if (instance.allowed(v, d) && (best < 0 || instance.time(v, d) < instance.time(v, best))) best = d;
  }
  return best;
}

}  // namespace

std::vector<int32_t> take_all_colours(const Instance& instance) {
  std::vector<int32_t> colour(static_cast<size_t>(instance.size));
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t d = fastest_device(instance, v, 1);
    colour[static_cast<size_t>(v)] = d < 0 ? 0 : d;
  }
  return colour;
}

std::vector<int32_t> cpu_only_colours(const Instance& instance) {
  std::vector<int32_t> colour(static_cast<size_t>(instance.size));
  for (int32_t v = 0; v < instance.size; ++v) {
    colour[static_cast<size_t>(v)] = instance.allowed(v, 0) ? 0 : fastest_device(instance, v, 1);
  }
  return colour;
}

Draft draft_from_colours(const Instance& instance, std::vector<int32_t> colour) {
  const Clusters clusters = settle_colours(instance, colour);
  return draw_runs(instance, clusters, std::move(colour), RunGoal::fewest);
}

Draft plan_topological(const Instance& instance, TopologicalOrder order) {
  std::vector<int32_t> colour = take_all_colours(instance);
  const Clusters clusters = settle_colours(instance, colour);
  return order == TopologicalOrder::min ? draw_runs(instance, clusters, std::move(colour), RunGoal::fewest)
                                        : draw_runs_in_index_order(instance, clusters, std::move(colour));
}

}  // namespace hetnn::plan
