// Shedding nodes until every device keeps its memory budget.
#include "hetnn/plan/partition/strategies/budget.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::plan {
namespace {

constexpr double kRelativeSlack = 1e-12;
/// Exports and budgets may undo each other's moves a few times; then there is no plan to be found this way.
constexpr int32_t kSettleRounds = 32;

double budget_of(const Instance& instance, int32_t d) {
  return instance.problem->devices[static_cast<size_t>(d)].budget_bytes;
}

bool fits(const Instance& instance, int32_t d, double bytes) {
  return budget_of(instance, d) < 0 || bytes <= budget_of(instance, d) * (1 + kRelativeSlack);
}

[[noreturn]] void throw_does_not_fit(const Instance& instance, int32_t d, double load) {
  double forced = 0;
  for (int32_t v = 0; v < instance.size; ++v) {
    bool elsewhere = false;
    for (int32_t e = 0; e < instance.device_count; ++e) elsewhere = elsewhere || (e != d && instance.allowed(v, e));
    if (!elsewhere) forced += instance.weight_bytes(v);
  }
  throw DoesNotFit(text("device '", instance.problem->devices[static_cast<size_t>(d)].name, "': budget_bytes is ",
                        budget_of(instance, d), ", but ", load, " bytes of weights remain there (", forced,
                        " of nodes that can run nowhere else). Raise the budget or let other devices take more."));
}

}  // namespace

std::vector<double> device_loads(const Instance& instance, const std::vector<int32_t>& colour) {
  std::vector<double> load(static_cast<size_t>(instance.device_count), 0);
  for (int32_t v = 0; v < instance.size; ++v)
    load[static_cast<size_t>(colour[static_cast<size_t>(v)])] += instance.weight_bytes(v);
  return load;
}

bool budgets_kept(const Instance& instance, const std::vector<int32_t>& colour) {
  if (!instance.any_budget) return true;
  const std::vector<double> load = device_loads(instance, colour);
  for (int32_t d = 0; d < instance.device_count; ++d) {
    if (!fits(instance, d, load[static_cast<size_t>(d)])) return false;
  }
  return true;
}

int32_t fit_budgets(const Instance& instance, std::vector<int32_t>& colour) {
  if (!instance.any_budget || budgets_kept(instance, colour)) return 0;
  std::vector<double> load = device_loads(instance, colour);
  int32_t moved = 0;
  // Accelerators first: what they shed may have to fit the general processor. Two passes, since others may fill up.
  for (int32_t pass = 0; pass < 2; ++pass) {
    for (int32_t k = 1; k <= instance.device_count; ++k) {
      const int32_t d = k % instance.device_count;
      if (fits(instance, d, load[static_cast<size_t>(d)])) continue;
      struct Move {
        double us_per_byte;
        int32_t node;
      };
      std::vector<Move> moves;
      for (int32_t v = 0; v < instance.size; ++v) {
        const double weight = instance.weight_bytes(v);
        if (colour[static_cast<size_t>(v)] != d || weight <= 0) continue;
        double cheapest = kUnsupported;
        for (int32_t e = 0; e < instance.device_count; ++e)
          if (e != d) cheapest = std::min(cheapest, instance.time(v, e));
        if (cheapest < kUnsupported) moves.push_back({(cheapest - instance.time(v, d)) / weight, v});
      }
      std::stable_sort(moves.begin(), moves.end(),
                       [](const Move& a, const Move& b) { return a.us_per_byte < b.us_per_byte; });
      for (const Move& move : moves) {
        if (fits(instance, d, load[static_cast<size_t>(d)])) break;
        const double weight = instance.weight_bytes(move.node);
        int32_t best = -1;
        for (int32_t e = 0; e < instance.device_count; ++e) {
          if (e == d || !instance.allowed(move.node, e) || !fits(instance, e, load[static_cast<size_t>(e)] + weight))
            continue;
          // A trapped node would be sent back at once.
          if (instance.is_trapped(move.node, e) && best >= 0) continue;
          if (best < 0 || instance.time(move.node, e) < instance.time(move.node, best)) best = e;
        }
        if (best < 0) continue;
        colour[static_cast<size_t>(move.node)] = best;
        load[static_cast<size_t>(d)] -= weight;
        load[static_cast<size_t>(best)] += weight;
        ++moved;
      }
    }
  }
  for (int32_t d = 0; d < instance.device_count; ++d) {
    if (!fits(instance, d, load[static_cast<size_t>(d)])) throw_does_not_fit(instance, d, load[static_cast<size_t>(d)]);
  }
  return moved;
}

Clusters settle_colours(const Instance& instance, std::vector<int32_t>& colour) {
  fit_budgets(instance, colour);
  Clusters clusters = settle_exports(instance, colour);
  for (int32_t round = 0; round < kSettleRounds && fit_budgets(instance, colour) > 0; ++round)
    clusters = settle_exports(instance, colour);
  if (!budgets_kept(instance, colour)) {
    const std::vector<double> load = device_loads(instance, colour);
    for (int32_t d = 0; d < instance.device_count; ++d) {
      if (!fits(instance, d, load[static_cast<size_t>(d)]))
        throw_does_not_fit(instance, d, load[static_cast<size_t>(d)]);
    }
  }
  return clusters;
}

}  // namespace hetnn::plan
