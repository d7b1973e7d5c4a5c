// The `depth` strategy: sets grow from the first unvisited node over edges that are continuous in depth.
#include <algorithm>
#include <numeric>

#include "hetnn/plan/partition/contraction.h"
#include "hetnn/plan/partition/parts.h"
#include "hetnn/plan/partition/strategies.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// A stable counting sort of `order` by the key of each node, rising or falling.
std::vector<int32_t> sorted_by(const std::vector<int32_t>& key, const std::vector<int32_t>& order, bool falling) {
  const int32_t top = key.empty() ? 0 : *std::max_element(key.begin(), key.end());
  std::vector<int32_t> begin(index(top) + 2, 0);
  const auto slot = [&](int32_t v) { return index(falling ? top - key[index(v)] : key[index(v)]); };
  for (const int32_t v : order) ++begin[slot(v) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int32_t> result(order.size());
  for (const int32_t v : order) result[index(begin[slot(v)]++)] = v;
  return result;
}

/// Grows one set after the other. Depths are those of the graph as given.
class DepthGrowth {
 public:
  DepthGrowth(const Instance& instance, const std::vector<int32_t>& colour)
      : instance_(instance),
        colour_(colour),
        depth_(node_depths(instance)),
        seeds_(seed_order(instance, depth_)),
        groups_({instance.in_begin, instance.in_nodes, instance.out_begin, instance.out_nodes}, seeds_),
        visited_(colour.size(), 0),
        set_of_(colour.size(), -1),
        inputs_in_set_(colour.size(), 0),
        consumers_in_set_(colour.size(), 0) {}

  std::vector<int32_t> run() {
    for (const int32_t seed : seeds_) {
      if (visited_[index(seed)] != 0) continue;
      visited_[index(seed)] = 1;
      if (colour_[index(seed)] != 0) grow(seed);
    }
    return groups_.numbering();
  }

 private:
  struct Edge {
    int32_t member;
    int32_t neighbour;
    bool forward;
  };

  void join(int32_t v) {
    visited_[index(v)] = 1;
    members_.push_back(v);
    const auto count = [&](std::vector<int32_t>& counts, int32_t t) {
      if (set_of_[index(t)] != set_) {
        set_of_[index(t)] = set_;
        inputs_in_set_[index(t)] = consumers_in_set_[index(t)] = 0;
      }
      ++counts[index(t)];
    };
    for (const int32_t t : instance_.consumers(v)) count(inputs_in_set_, t);
    for (const int32_t t : instance_.inputs(v)) count(consumers_in_set_, t);
  }

  /// Whether the neighbour may join over this edge, apart from convexity.
  bool continuous(const Edge& e) const {
    const int32_t t = e.neighbour;
    const int32_t step = depth_[index(t)] - depth_[index(e.member)];
    if (step == 1 || step == -1) return true;
    return e.forward ? inputs_in_set_[index(t)] == static_cast<int32_t>(instance_.inputs(t).size())
                     : consumers_in_set_[index(t)] == static_cast<int32_t>(instance_.consumers(t).size());
  }

  /// Adds the neighbour when it may join and the set stays convex.
  bool try_join(const Edge& e) {
    const int32_t t = e.neighbour;
    if (!continuous(e)) return false;
    const int32_t set = groups_.group(e.member);
    if (!(e.forward ? groups_.try_contract(set, t) : groups_.try_contract(t, set))) return false;
    join(t);
    return true;
  }

  void grow(int32_t seed) {
    ++set_;
    members_.clear();
    waiting_.clear();
    join(seed);
    size_t next = 0;
    for (int32_t round = 0; round < kGrowthRounds; ++round) {
      // Edges refused before come first, in the order they were met; then those of nodes that joined since.
      const size_t before = members_.size();
      size_t kept = 0;
      for (size_t k = 0; k < waiting_.size(); ++k) {
        const Edge e = waiting_[k];
        if (visited_[index(e.neighbour)] == 0 && !try_join(e)) waiting_[kept++] = e;
      }
      waiting_.resize(kept);
      for (; next < members_.size(); ++next) {
        const int32_t member = members_[next];
        for (const bool forward : {false, true}) {
          for (const int32_t t : forward ? instance_.consumers(member) : instance_.inputs(member)) {
            if (visited_[index(t)] != 0 || colour_[index(t)] != colour_[index(seed)]) continue;
            const Edge e{member, t, forward};
            if (!try_join(e)) waiting_.push_back(e);
          }
        }
      }
      if (round > 0 && members_.size() == before) break;
    }
  }

  const Instance& instance_;
  const std::vector<int32_t>& colour_;
  std::vector<int32_t> depth_, seeds_;
  ContractionGraph groups_;
  std::vector<uint8_t> visited_;
  std::vector<int32_t> set_of_, inputs_in_set_, consumers_in_set_;
  std::vector<int32_t> members_;
  std::vector<Edge> waiting_;
  int32_t set_ = 0;
};

}  // namespace

std::vector<int32_t> node_depths(const Instance& instance) {
  std::vector<int32_t> depth(static_cast<size_t>(instance.size), 0);
  for (int32_t v = 0; v < instance.size; ++v) {
    for (const int32_t u : instance.inputs(v)) depth[index(v)] = std::max(depth[index(v)], depth[index(u)] + 1);
  }
  return depth;
}

std::vector<int32_t> seed_order(const Instance& instance, const std::vector<int32_t>& depth) {
  std::vector<int32_t> height(static_cast<size_t>(instance.size), 0);
  for (int32_t v = instance.size - 1; v >= 0; --v) {
    for (const int32_t c : instance.consumers(v)) height[index(v)] = std::max(height[index(v)], height[index(c)] + 1);
  }
  std::vector<int32_t> order(static_cast<size_t>(instance.size));
  std::iota(order.begin(), order.end(), 0);
  return sorted_by(height, sorted_by(depth, order, true), true);
}

std::vector<int32_t> depth_parts(const Instance& instance, const std::vector<int32_t>& colour) {
  return DepthGrowth(instance, colour).run();
}

Draft plan_depth(const Instance& instance) {
  std::vector<int32_t> colour = take_all_colours(instance);
  std::vector<int32_t> parts = depth_parts(instance, colour);
  return draft_from_parts(instance, std::move(parts), std::move(colour));
}

}  // namespace hetnn::plan
