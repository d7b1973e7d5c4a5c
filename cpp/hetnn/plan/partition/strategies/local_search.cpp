// Local search: subgraphs recoloured, nodes moved, small problems searched node by node.
#include "hetnn/plan/partition/strategies/local_search.h"

#include <algorithm>
#include <numeric>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/strategies/budget.h"
#include "hetnn/plan/partition/strategies/runs.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

constexpr double kLeastGain_us = 1e-9;
constexpr int32_t kSweeps = 4;
/// Larger problems are swept less often: what is left to gain is small, and a sweep costs as much as a cut.
constexpr int32_t kLarge = 20'000;
constexpr int32_t kSweepsOfLarge = 2;
/// Bounds on the search over single nodes and pairs: nodes times evaluations, and nodes.
constexpr int64_t kMostVisits = 60'000;
constexpr int32_t kMostNodes = 400;

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// Changes a draft in place; subgraphs keep their order, so every step leaves a valid plan.
class DraftSearch {
 public:
  DraftSearch(const Instance& instance, const Draft& draft)
      : instance_(instance),
        colour_(draft.colour),
        place_(draft.subgraph_of),
        device_(index(draft.subgraph_count), 0),
        members_(index(draft.subgraph_count)),
        counts_(instance, colour_) {
    for (int32_t v = 0; v < instance.size; ++v) {
      device_[index(place_[index(v)])] = colour_[index(v)];
      members_[index(place_[index(v)])].push_back(v);
    }
    if (instance.any_budget) load_ = device_loads(instance, colour_);
  }

  std::vector<int32_t> run() {
    const int32_t sweeps = instance_.size > kLarge ? kSweepsOfLarge : kSweeps;
    for (int32_t sweep = 0; sweep < sweeps; ++sweep) {
      bool changed = false;
      for (int32_t s = 0; s < static_cast<int32_t>(device_.size()); ++s) changed |= recolour(s);
      changed |= move_nodes();
      if (!changed) break;
    }
    return std::move(colour_);
  }

 private:
  double launch(int32_t d) const { return d < 0 ? 0 : instance_.launch_us[index(d)]; }
  int32_t device_at(int32_t s) const {
    return s < 0 || s >= static_cast<int32_t>(device_.size()) ? -1 : device_[index(s)];
  }
  /// Launches of subgraph s and its right neighbour when s is on d: neighbours on one device are one visit.
  double launches(int32_t s, int32_t d) const {
    const int32_t left = device_at(s - 1);
    const int32_t right = device_at(s + 1);
    return (left == d ? 0 : launch(d)) + (right == d ? 0 : launch(right));
  }

  bool connected(int32_t d) const { return instance_.problem->devices[index(d)].connected; }

  bool has_room(int32_t d, double bytes) const {
    const double budget = instance_.problem->devices[index(d)].budget_bytes;
    return !instance_.any_budget || budget < 0 || load_[index(d)] + bytes <= budget;
  }

  double move(int32_t v, int32_t d) {
    if (instance_.any_budget) {
      load_[index(colour_[index(v)])] -= instance_.weight_bytes(v);
      load_[index(d)] += instance_.weight_bytes(v);
    }
    return counts_.move(v, d);
  }

  /// No move of these nodes to d can save more: their time differences, and every transfer into and out of them.
  double most_saved(const std::vector<int32_t>& nodes, int32_t before, int32_t d) const {
    double saved = 0;
    for (const int32_t v : nodes) {
      saved += instance_.time(v, before) - instance_.time(v, d);
      for (const int32_t u : instance_.inputs(v)) {
        const int32_t from = colour_[index(u)];
        if (from != before) saved += instance_.transfer(u, from, before);
      }
      for (int32_t e = 0; e < instance_.device_count; ++e) {
        if (e != before && counts_.reads(v, e)) saved += instance_.transfer(v, before, e);
      }
    }
    return saved;
  }

  /// Puts a whole subgraph on the device where it gains most.
  bool recolour(int32_t s) {
    const std::vector<int32_t>& nodes = members_[index(s)];
    if (nodes.empty()) return false;
    bool changed = false;
    for (int32_t d = 0; d < instance_.device_count; ++d) {
      const int32_t before = device_[index(s)];
      if (d == before || connected(d)) continue;
      double bytes = 0;
      const bool possible = std::all_of(nodes.begin(), nodes.end(), [&](int32_t v) {
        bytes += instance_.any_budget ? instance_.weight_bytes(v) : 0;
        return instance_.allowed(v, d) && !instance_.is_trapped(v, d);
      });
      if (!possible || !has_room(d, bytes)) continue;
      double gain = launches(s, before) - launches(s, d);
      if (gain + most_saved(nodes, before, d) <= kLeastGain_us) continue;
      for (const int32_t v : nodes) gain += move(v, d);
      if (gain > kLeastGain_us) {
        device_[index(s)] = d;
        changed = true;
      } else {
        for (const int32_t v : nodes) move(v, before);
      }
    }
    return changed;
  }

  /// Moves nodes into subgraphs of other devices that stand between their inputs and their consumers.
  bool move_nodes() {
    const auto count = static_cast<int32_t>(device_.size());
    // next_[d * count + s]: the first subgraph of device d that is not empty, at s or after it.
    std::vector<int32_t> next(index(instance_.device_count) * index(count), count);
    for (int32_t d = 0; d < instance_.device_count; ++d) {
      int32_t found = count;
      for (int32_t s = count - 1; s >= 0; --s) {
        if (device_[index(s)] == d && !members_[index(s)].empty()) found = s;
        next[index(d) * index(count) + index(s)] = found;
      }
    }
    bool changed = false;
    for (int32_t v = 0; v < instance_.size; ++v) {
      const int32_t from = colour_[index(v)];
      int32_t low = 0;
      int32_t high = count - 1;
      bool tied = connected(from);
      for (const int32_t u : instance_.inputs(v)) {
        low = std::max(low, place_[index(u)]);
        tied = tied || instance_.is_trapped(u, colour_[index(u)]);
      }
      if (tied) continue;
      for (const int32_t c : instance_.consumers(v)) high = std::min(high, place_[index(c)]);
      for (int32_t d = 0; d < instance_.device_count; ++d) {
        if (d == colour_[index(v)] || connected(d) || !instance_.allowed(v, d) || instance_.is_trapped(v, d) ||
            !has_room(d, instance_.any_budget ? instance_.weight_bytes(v) : 0))
          continue;
        const int32_t target = next[index(d) * index(count) + index(low)];
        if (target > high) continue;
        const int32_t before = colour_[index(v)];
        if (move(v, d) > kLeastGain_us) {
          place_[index(v)] = target;
          changed = true;
        } else {
          move(v, before);
        }
      }
    }
    if (changed) {
      for (auto& nodes : members_) nodes.clear();
      for (int32_t v = 0; v < instance_.size; ++v) members_[index(place_[index(v)])].push_back(v);
    }
    return changed;
  }

  const Instance& instance_;
  std::vector<int32_t> colour_;
  std::vector<int32_t> place_, device_;
  std::vector<std::vector<int32_t>> members_;
  TransferCounts counts_;
  std::vector<double> load_;
};

/// Draws subgraphs anew for colours; true when that is cheaper than the best so far.
bool take_if_cheaper(const Instance& instance, std::vector<int32_t> colour, Draft& best, double& best_cost_us) {
  try {
    const Clusters clusters = settle_colours(instance, colour);
    // Most changes cost more than they can save in launches; only the rest are drawn.
    double least_us = colours_cost_us(instance, colour);
    if (least_us >= best_cost_us) return false;
    const std::vector<int32_t> fewest = fewest_subgraphs(instance, colour);
    for (size_t d = 0; d < fewest.size(); ++d) least_us += fewest[d] * instance.launch_us[d];
    if (least_us >= best_cost_us - kLeastGain_us) return false;
    Draft draft = draw_runs(instance, clusters, std::move(colour), RunGoal::cheapest);
    const double cost = draft_cost_us(instance, draft);
    if (cost >= best_cost_us - kLeastGain_us) return false;
    best = std::move(draft);
    best_cost_us = cost;
    return true;
  } catch (const Unsupported&) {
    return false;  // these colours have no valid subgraphs
  } catch (const DoesNotFit&) {
    return false;
  }
}

/// First improvement over all changes of one node, and of a node together with one of its inputs.
void search_nodes(const Instance& instance, Draft& best, double& best_cost_us) {
  if (instance.size > kMostNodes) return;
  int64_t left = kMostVisits / (instance.size + static_cast<int64_t>(instance.in_nodes.size()) + 1);
  for (bool improved = true; improved && left > 0;) {
    improved = false;
    for (int32_t v = 0; v < instance.size && left > 0; ++v) {
      for (int32_t d = 0; d < instance.device_count; ++d) {
        if (d == best.colour[index(v)] || !instance.allowed(v, d)) continue;
        std::vector<int32_t> colour = best.colour;
        colour[index(v)] = d;
        --left;
        if (take_if_cheaper(instance, colour, best, best_cost_us)) {
          improved = true;
          continue;
        }
        for (const int32_t u : instance.inputs(v)) {
          if (!instance.allowed(u, d) || best.colour[index(u)] == d) continue;
          std::vector<int32_t> pair = colour;
          pair[index(u)] = d;
          --left;
          improved |= take_if_cheaper(instance, std::move(pair), best, best_cost_us);
        }
      }
    }
  }
}

}  // namespace

double improve(const Instance& instance, Draft& draft, double cost_us) {
  const int32_t sweeps = instance.size > kLarge ? 1 : kSweeps;
  for (int32_t sweep = 0; sweep < sweeps; ++sweep) {
    if (!take_if_cheaper(instance, DraftSearch(instance, draft).run(), draft, cost_us)) break;
  }
  search_nodes(instance, draft, cost_us);
  return cost_us;
}

bool try_all_colourings(const Instance& instance, Draft& best, double& best_cost_us) {
  double count = 1;
  std::vector<std::vector<int32_t>> choices(static_cast<size_t>(instance.size));
  for (int32_t v = 0; v < instance.size; ++v) {
    for (int32_t d = 0; d < instance.device_count; ++d) {
      if (instance.allowed(v, d)) choices[index(v)].push_back(d);
    }
    count *= static_cast<double>(choices[index(v)].size());
    if (count > kMostColourings) return false;
  }
  std::vector<size_t> digit(choices.size(), 0);
  std::vector<int32_t> colour(choices.size());
  for (size_t v = 0; v < colour.size(); ++v) colour[v] = choices[v].front();
  for (;;) {
    take_if_cheaper(instance, colour, best, best_cost_us);
    size_t v = 0;
    while (v < digit.size() && ++digit[v] == choices[v].size()) {
      digit[v] = 0;
      colour[v] = choices[v][0];
      ++v;
    }
    if (v == digit.size()) return true;
    colour[v] = choices[v][digit[v]];
  }
}

}  // namespace hetnn::plan
