// Plans for devices that work at the same time: the shortest schedule found, not the least sum of times.
#include <algorithm>
#include <queue>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/strategies/budget.h"
#include "hetnn/plan/partition/strategies/runs.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

/// Nodes and edges that all trials together may look at, so that the work depends on no clock.
constexpr int64_t kMostVisits = 1'000'000;
constexpr double kRelativeGain = 1e-9;

size_t index(int32_t v) { return static_cast<size_t>(v); }

class OverlapSearch {
 public:
  explicit OverlapSearch(const Instance& instance)
      : instance_(instance), apart_problem_(*instance.problem), apart_(instance) {
    for (ProblemDevice& device : apart_problem_.devices) device.connected = true;
    apart_.problem = &apart_problem_;
    apart_.any_connected = true;
    trials_left_ = kMostVisits / (instance.size + static_cast<int64_t>(instance.in_nodes.size()) + 1);
  }

  Draft run(Draft start) {
    best_ = std::move(start);
    best_us_ = makespan_us(best_);
    try_order(best_);
    try_colours(std::vector<int32_t>(best_.colour));
    try_plan([&] { return draft_from_colours(instance_, take_all_colours(instance_)); });
    try_plan([&] { return plan_topological(instance_, TopologicalOrder::min); });
    try_plan([&] { return plan_topological(instance_, TopologicalOrder::index); });
    try_plan([&] { return plan_depth(instance_); });
    for (const Settle settle : {Settle::merge, Settle::trim}) {
      try_plan([&] { return plan_merge(instance_, {.settle = settle}); });
      try_plan([&] { return plan_merge(instance_, {.settle = settle, .policy = Policy::balance}); });
    }
    try_plan([&] { return draft_from_colours(instance_, cpu_only_colours(instance_)); });
    while (trials_left_ > 0 && improve_once()) {
    }
    return std::move(best_);
  }

 private:
  double makespan_us(const Draft& draft) const { return finish_plan(instance_, draft).makespan_us; }

  bool keep_if_shorter(Draft draft) {
    const double us = makespan_us(draft);
    if (us >= best_us_ - kRelativeGain * (1 + best_us_)) return false;
    best_ = std::move(draft);
    best_us_ = us;
    return true;
  }

  /// The draft as it is numbered, and numbered so that what stands on the longest way to the end goes first; both also
  /// with its subgraphs cut where they hold others up.
  bool try_order(const Draft& draft) {
    const Draft cut = cut_where_others_wait(draft);
    bool shorter = keep_if_shorter(draft);
    shorter |= keep_if_shorter(longest_way_first(draft));
    if (cut.subgraph_count == draft.subgraph_count) return shorter;
    shorter |= keep_if_shorter(cut);
    shorter |= keep_if_shorter(longest_way_first(cut));
    return shorter;
  }

  /// Colours with the fewest launches, and with every connected part a subgraph by itself, since a part that waits for
  /// nobody need not wait for its neighbours.
  bool try_colours(std::vector<int32_t> colour) {
    --trials_left_;
    try {
      const Clusters clusters = settle_colours(instance_, colour);
      bool shorter = try_order(draw_runs(instance_, clusters, colour, RunGoal::cheapest));
      shorter |= try_order(draw_runs(apart_, clusters, std::move(colour), RunGoal::cheapest));
      return shorter;
    } catch (const Unsupported&) {
      return false;
    } catch (const DoesNotFit&) {
      return false;
    }
  }

  template <typename Build>
  void try_plan(const Build& build) {
    try {
      Draft draft = build();
      if (!budgets_kept(instance_, draft.colour)) return;
      try_order(draft);
      try_colours(std::move(draft.colour));
    } catch (const Unsupported&) {
      return;  // this way leads nowhere; the start is a plan already
    } catch (const DoesNotFit&) {
      return;
    }
  }

  /// Moves one piece of the graph to another device: a connected part of a subgraph, a chain between forks and joins, a
  /// single node.
  bool improve_once() {
    bool shorter = false;
    for (const std::vector<int32_t>& piece_of : {connected_parts(), chains(), nodes()}) {
      std::vector<std::vector<int32_t>> pieces(
          instance_.size > 0 ? index(*std::max_element(piece_of.begin(), piece_of.end())) + 1 : 0);
      for (int32_t v = 0; v < instance_.size; ++v) pieces[index(piece_of[index(v)])].push_back(v);
      for (const std::vector<int32_t>& piece : pieces) {
        for (int32_t d = 0; d < instance_.device_count && trials_left_ > 0; ++d) {
          std::vector<int32_t> colour = best_.colour;
          bool changed = false, allowed = true;
          for (const int32_t v : piece) {
            changed = changed || colour[index(v)] != d;
            allowed = allowed && instance_.allowed(v, d);
            colour[index(v)] = d;
          }
          if (changed && allowed) shorter |= try_colours(std::move(colour));
        }
      }
    }
    return shorter;
  }

  std::vector<int32_t> nodes() const {
    std::vector<int32_t> piece(index(instance_.size));
    for (int32_t v = 0; v < instance_.size; ++v) piece[index(v)] = v;
    return piece;
  }

  std::vector<int32_t> chains() const {
    std::vector<int32_t> piece(index(instance_.size));
    int32_t count = 0;
    for (int32_t v = 0; v < instance_.size; ++v) {
      const auto inputs = instance_.inputs(v);
      const bool goes_on = inputs.size() == 1 && instance_.consumers(inputs[0]).size() == 1;
      piece[index(v)] = goes_on ? piece[index(inputs[0])] : count++;
    }
    return piece;
  }

  std::vector<int32_t> connected_parts() {
    Draft draft = best_;
    split_islands(apart_, draft);
    return draft.subgraph_of;
  }

  /// A subgraph gives its values away when all of it has run, and starts when all it reads has come. So it is cut
  /// behind nodes that another device reads, and before nodes that read what another subgraph writes. Levels rise along
  /// the edges within a subgraph, so no ring closes.
  Draft cut_where_others_wait(const Draft& draft) const {
    if (!instance_.trapped.empty()) return draft;  // a trapped node and all that reads it share a subgraph
    std::vector<int32_t> level(index(instance_.size), 0), most(index(draft.subgraph_count), 0);
    for (int32_t v = 0; v < instance_.size; ++v) {
      const int32_t s = draft.subgraph_of[index(v)];
      const auto inputs = instance_.inputs(v);
      const bool waits =
          std::any_of(inputs.begin(), inputs.end(), [&](int32_t u) { return draft.subgraph_of[index(u)] != s; });
      for (const int32_t u : inputs) {
        if (draft.subgraph_of[index(u)] != s) continue;
        const int32_t d = draft.colour[index(u)];
        const auto consumers = instance_.consumers(u);
        const bool crosses =
            std::any_of(consumers.begin(), consumers.end(), [&](int32_t c) { return draft.colour[index(c)] != d; });
        level[index(v)] = std::max(level[index(v)], level[index(u)] + (waits || crosses ? 1 : 0));
      }
      most[index(s)] = std::max(most[index(s)], level[index(v)]);
    }
    std::vector<int32_t> first(index(draft.subgraph_count) + 1, 0);
    for (size_t s = 0; s < most.size(); ++s) first[s + 1] = first[s] + most[s] + 1;
    Draft out = draft;
    for (int32_t v = 0; v < instance_.size; ++v)
      out.subgraph_of[index(v)] = first[index(draft.subgraph_of[index(v)])] + level[index(v)];
    out.subgraph_count = first.back();
    out = drop_empty(std::move(out));
    // Levels may leave nodes together that only a node of another level had connected.
    if (instance_.any_connected) split_islands(instance_, out);
    return out;
  }

  static Draft drop_empty(Draft draft) {
    std::vector<int32_t> number(index(draft.subgraph_count), 0);
    for (const int32_t s : draft.subgraph_of) number[index(s)] = 1;
    int32_t count = 0;
    for (int32_t& n : number) n = n != 0 ? count++ : -1;
    for (int32_t& s : draft.subgraph_of) s = number[index(s)];
    draft.subgraph_count = count;
    return draft;
  }

  Draft longest_way_first(const Draft& draft) const {
    const size_t count = index(draft.subgraph_count);
    std::vector<double> way_us(count, 0), own_us(count, 0);
    std::vector<std::vector<int32_t>> readers(count);
    std::vector<int32_t> waits(count, 0), device(count, 0);
    for (int32_t v = 0; v < instance_.size; ++v) {
      const int32_t s = draft.subgraph_of[index(v)];
      device[index(s)] = draft.colour[index(v)];
      own_us[index(s)] += instance_.time(v, draft.colour[index(v)]);
      for (const int32_t c : instance_.consumers(v)) {
        if (draft.subgraph_of[index(c)] != s) readers[index(s)].push_back(draft.subgraph_of[index(c)]);
      }
    }
    for (size_t s = 0; s < count; ++s) {
      std::sort(readers[s].begin(), readers[s].end());
      readers[s].erase(std::unique(readers[s].begin(), readers[s].end()), readers[s].end());
      for (const int32_t r : readers[s]) ++waits[index(r)];
    }
    for (size_t s = count; s-- > 0;) {  // readers have higher numbers
      for (const int32_t r : readers[s]) way_us[s] = std::max(way_us[s], way_us[index(r)]);
      way_us[s] += own_us[s] + instance_.launch_us[index(device[s])];
    }
    const auto later = [&](int32_t a, int32_t b) {
      return way_us[index(a)] != way_us[index(b)] ? way_us[index(a)] < way_us[index(b)] : a > b;
    };
    std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> ready(later);
    for (size_t s = 0; s < count; ++s) {
      if (waits[s] == 0) ready.push(static_cast<int32_t>(s));
    }
    std::vector<int32_t> number(count, 0);
    for (int32_t next = 0; !ready.empty(); ++next) {
      const int32_t s = ready.top();
      ready.pop();
      number[index(s)] = next;
      for (const int32_t r : readers[index(s)]) {
        if (--waits[index(r)] == 0) ready.push(r);
      }
    }
    Draft out = draft;
    for (int32_t& s : out.subgraph_of) s = number[index(s)];
    return out;
  }

  const Instance& instance_;
  Problem apart_problem_;
  Instance apart_;  // the same with every device taking connected subgraphs only
  int64_t trials_left_ = 0;
  Draft best_;
  double best_us_ = 0;
};

}  // namespace

Draft plan_overlapped(const Instance& instance, Draft start) {
  if (instance.size == 0 || instance.device_count == 1) return start;
  return OverlapSearch(instance).run(std::move(start));
}

}  // namespace hetnn::plan
