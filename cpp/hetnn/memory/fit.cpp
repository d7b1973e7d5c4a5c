// The ladder: greedy orders, hill climbing over orders, bounded and then unbounded canonical search.
#include "hetnn/memory/fit.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <span>

#include "hetnn/base/error.h"
#include "hetnn/base/interrupt.h"
#include "hetnn/memory/exact.h"
#include "hetnn/memory/order_fit.h"

namespace hetnn::memory {
namespace {

class Clock {
 public:
  explicit Clock(double limit_s) : limit_s_(limit_s) {}
  double spent_s() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  bool over(double share = 1.0) const { return spent_s() >= share * limit_s_; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double limit_s_;
};

// A linear congruential generator: the same numbers with every standard library.
class Random {
 public:
  uint32_t next() {
    return static_cast<uint32_t>((state_ = state_ * 6364136223846793005u + 1442695040888963407u) >> 33);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<uint32_t>(n)); }
  double unit() { return next() / 2147483648.0; }

 private:
  uint64_t state_ = 1;
};

// Moves one buffer at a time to another place of the order, one below the peak more often than others, and keeps the
// change when the peak does not rise.
void climb(const ConflictGraph& graph, std::vector<int> order, int64_t goal_bytes, int64_t most_steps,
           const Clock& clock, double share, Fit& best) {
  const int n = graph.size();
  if (n < 2) return;
  Random random;
  Fit now = place_in_order(graph, order);
  if (now.peak_bytes < best.peak_bytes) best = now;
  for (int64_t step = 0; step < most_steps && best.peak_bytes > goal_bytes; ++step) {
    check_interrupt();
    if (clock.over(share)) return;
    int from = random.below(n);
    if (random.below(2) == 0) {  // a buffer at the peak
      for (int tries = 0; tries < n; ++tries, from = (from + 1) % n) {
        const auto k = static_cast<size_t>(order[static_cast<size_t>(from)]);
        if (now.offsets[k] + graph.sizes()[k] == now.peak_bytes) break;
      }
    }
    const int to = random.below(n);
    std::vector<int> changed = order;
    const int moved = changed[static_cast<size_t>(from)];
    changed.erase(changed.begin() + from);
    changed.insert(changed.begin() + to, moved);
    Fit fit = place_in_order(graph, changed, now.peak_bytes);
    if (fit.peak_bytes > now.peak_bytes) continue;
    order = std::move(changed);
    now = std::move(fit);
    if (now.peak_bytes < best.peak_bytes) best = now;
  }
}

// The keys that order candidates of equal offset: lifetime, size x lifetime, the most bytes alive during it, and size.
class Ranks {
 public:
  /// Only as far as `stop` lets it.
  Ranks(const std::vector<Buffer>& buffers, const ConflictGraph& graph, const std::function<bool()>& stop) {
    const size_t n = buffers.size();
    for (auto& key : keys_) key.resize(n);
    for (size_t k = 0; k < n; ++k) {
      if (k % 64 == 0 && stop()) return;
      const Buffer& b = buffers[k];
      keys_[0][k] = static_cast<double>(b.upper - b.lower);
      keys_[1][k] = keys_[0][k] * static_cast<double>(b.size_bytes);
      std::vector<Buffer> during = {b};
      for (int other : graph.neighbours(static_cast<int>(k))) {
        Buffer part = buffers[static_cast<size_t>(other)];
        part.lower = std::max(part.lower, b.lower);
        part.upper = std::min(part.upper, b.upper);
        during.push_back(part);
      }
      keys_[2][k] = static_cast<double>(lower_bound_bytes(during));
      keys_[3][k] = static_cast<double>(b.size_bytes);
    }
  }

  static constexpr int kOrders = 5;

  // Ranks by order `which`, its keys disturbed by up to +-noise/2 and times weights to a power.
  std::vector<int> rank(int which, double noise, std::span<const double> weights, double power, Random& random) const {
    static constexpr std::array<std::array<int, 3>, kOrders> kKeys = {
        {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}, {1, 0, 2}, {3, 0, 2}}};
    const size_t n = keys_[0].size();
    std::vector<double> factor(n, 1.0);
    if (noise > 0) {
      for (double& f : factor) f += noise * (random.unit() - 0.5);
    }
    for (size_t k = 0; power > 0 && k < n; ++k) factor[k] *= std::pow(weights[k], power);
    std::vector<int> order(n), rank(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
      for (int key : kKeys[static_cast<size_t>(which)]) {
        const double x = keys_[static_cast<size_t>(key)][i] * factor[i],
                     y = keys_[static_cast<size_t>(key)][j] * factor[j];
        if (x != y) return x > y;
      }
      return false;
    });
    for (size_t k = 0; k < n; ++k) rank[static_cast<size_t>(order[k])] = static_cast<int>(k);
    return rank;
  }

 private:
  std::array<std::vector<double>, 4> keys_;
};

int64_t peak_of(const std::vector<int64_t>& offsets, const ConflictGraph& graph) {
  int64_t peak_bytes = 0;
  for (size_t k = 0; k < offsets.size(); ++k) peak_bytes = std::max(peak_bytes, offsets[k] + graph.sizes()[k]);
  return peak_bytes;
}

}  // namespace

FitResult fit(const std::vector<Buffer>& buffers, int64_t capacity_bytes, const FitOptions& options) {
  if (!(options.seconds >= 0)) {
    throw InvalidModel(text("seconds must be a number of at least 0; found ", options.seconds, "."));
  }
  const Clock clock(options.seconds);
  const std::function<bool()> stop = [&] {
    check_interrupt();
    return clock.over();
  };
  const ConflictGraph graph(buffers, options.alignment_bytes);
  FitResult result;
  result.lower_bound_bytes = lower_bound_bytes(buffers, options.alignment_bytes);
  result.fit = fit_greedy(buffers, graph, result.lower_bound_bytes, stop);
  result.method = "greedy";
  result.proven_infeasible = result.lower_bound_bytes > capacity_bytes;
  const int64_t goal_bytes = options.heuristic_only ? result.lower_bound_bytes : capacity_bytes;
  auto better = [&](Fit found, const char* method) {
    if (found.peak_bytes >= result.fit.peak_bytes) return;
    result.fit = std::move(found);
    result.method = method;
  };
  std::optional<Ranks> ranks;  // made for the first search
  Random random;
  Blame blame(graph.size());
  auto search = [&](int which, double noise, double power, int64_t limit_bytes, int64_t max_nodes, const char* method) {
    if (!ranks) ranks.emplace(buffers, graph, stop);
    if (stop()) return ExactOutcome::gave_up;
    const std::vector<int> rank = ranks->rank(which, noise, blame.weights(), power, random);
    Blame alone(graph.size());  // a long search of one order says little about others
    if (power > 0) blame.next_search();
    const ExactResult found =
        search_exact(buffers, graph, rank, limit_bytes, max_nodes, power > 0 ? blame : alone, stop);
    result.nodes += found.nodes;
    if (found.outcome == ExactOutcome::found) better({found.offsets, peak_of(found.offsets, graph)}, method);
    return found.outcome;
  };

  if (result.fit.peak_bytes > goal_bytes) {
    Fit best = result.fit;
    const auto orders = greedy_orders(buffers, graph);
    for (const auto& order : orders) {
      if (!clock.over(0.3)) climb(graph, order, goal_bytes, 200, clock, 0.3, best);
    }
    better(std::move(best), "climb");
  }
  if (options.heuristic_only) {
    // Searches of a few nodes under falling limits: each is one greedy pass that may step back a little.
    for (int64_t max_nodes = 1000; max_nodes <= 4000 && !clock.over(); max_nodes *= 2) {
      int64_t low = std::min(result.lower_bound_bytes, result.fit.peak_bytes);
      while (low < result.fit.peak_bytes && !clock.over()) {
        const int64_t limit_bytes = low + (result.fit.peak_bytes - low) / 2;
        bool found = false;
        for (int which = 0; which < Ranks::kOrders && !found; ++which) {
          found = search(which, 0, 0, limit_bytes, max_nodes, "climb") == ExactOutcome::found;
        }
        if (!found) low = limit_bytes + 1;
      }
    }
  } else if (!result.proven_infeasible) {
    // Restarts: each order as it is with growing patience, between many short searches with disturbed orders that learn
    // from each other which buffers are in the way.
    bool decided = result.fit.peak_bytes <= capacity_bytes;
    auto attempt = [&](int which, double noise, double power, int64_t max_nodes) {
      if (decided || clock.over()) return;
      const ExactOutcome outcome = search(which, noise, power, capacity_bytes, max_nodes, "exact");
      if (outcome == ExactOutcome::infeasible) result.proven_infeasible = true;
      decided = outcome != ExactOutcome::gave_up;
    };
    int64_t patience = 4096;
    for (int round = 0; !decided && !clock.over();
         ++round, patience = std::min<int64_t>(patience * 3, int64_t{1} << 40)) {
      for (int which = 0; which < Ranks::kOrders; ++which) attempt(which, 0, 0, patience);
      for (int restart = 0; restart < 16 << round; ++restart) {
        for (int which = 0; which < Ranks::kOrders; ++which) attempt(which, 0.3, 0.5, 1000);
        if (decided || clock.over()) break;
      }
    }
  }
  result.feasible = result.fit.peak_bytes <= capacity_bytes;
  return result;
}

}  // namespace hetnn::memory
