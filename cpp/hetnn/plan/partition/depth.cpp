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
      : DepthGrowth(instance, colour, node_depths(instance)) {}

  std::vector<int32_t> run() {
    for (const int32_t seed : seeds_) {
      if (at(seed).visited) continue;
      at(seed).visited = true;
      if (at(seed).colour != 0) grow(seed);
    }
    return groups_.numbering();
  }

 private:
  /// What growing asks of a neighbour, together so that it touches half a cache line.
  struct alignas(32) Node {
    int32_t depth = 0;
    int32_t colour = 0;
    int32_t inputs = 0, consumers = 0;
    /// The last set that touched the node, and how many of its inputs and consumers are in that.
    int32_t set = 0;
    int32_t inputs_in_set = 0, consumers_in_set = 0;
    bool visited = false;
  };
  struct Edge {
    int32_t member;
    int32_t neighbour;
    bool forward;
  };

  DepthGrowth(const Instance& instance, const std::vector<int32_t>& colour, const std::vector<int32_t>& depth)
      : instance_(instance),
        seeds_(seed_order(instance, depth)),
        groups_({instance.in_begin, instance.in_nodes, instance.out_begin, instance.out_nodes}, seeds_),
        nodes_(colour.size()) {
    for (int32_t v = 0; v < instance.size; ++v) {
      Node& node = at(v);
      node.depth = depth[index(v)];
      node.colour = colour[index(v)];
      node.inputs = static_cast<int32_t>(instance.inputs(v).size());
      node.consumers = static_cast<int32_t>(instance.consumers(v).size());
    }
  }

  Node& at(int32_t v) { return nodes_[index(v)]; }

  void join(int32_t v) {
    at(v).visited = true;
    members_.push_back(v);
    const auto touch = [&](int32_t t) -> Node& {
      Node& node = at(t);
      if (node.set != set_) {
        node.set = set_;
        node.inputs_in_set = node.consumers_in_set = 0;
      }
      return node;
    };
    for (const int32_t t : instance_.consumers(v)) ++touch(t).inputs_in_set;
    for (const int32_t t : instance_.inputs(v)) ++touch(t).consumers_in_set;
  }

  /// Adds the neighbour when the edge is continuous and the set stays convex.
  bool try_join(const Edge& e) {
    const Node& t = at(e.neighbour);
    const int32_t step = t.depth - at(e.member).depth;
    const bool continuous =
        step == 1 || step == -1 || (e.forward ? t.inputs_in_set == t.inputs : t.consumers_in_set == t.consumers);
    if (!continuous) return false;
    const int32_t set = groups_.group(e.member);
    if (!(e.forward ? groups_.try_contract(set, e.neighbour) : groups_.try_contract(e.neighbour, set))) return false;
    join(e.neighbour);
    return true;
  }

  void grow(int32_t seed) {
    ++set_;
    members_.clear();
    waiting_.clear();
    join(seed);
    const int32_t colour = at(seed).colour;
    size_t next = 0;
    for (int32_t round = 0; round < kGrowthRounds; ++round) {
      // Edges refused before come first, in the order they were met; then those of nodes that joined since.
      const size_t before = members_.size();
      size_t kept = 0;
      for (size_t k = 0; k < waiting_.size(); ++k) {
        const Edge e = waiting_[k];
        if (!at(e.neighbour).visited && !try_join(e)) waiting_[kept++] = e;
      }
      waiting_.resize(kept);
      for (; next < members_.size(); ++next) {
        const int32_t member = members_[next];
        for (const bool forward : {false, true}) {
          for (const int32_t t : forward ? instance_.consumers(member) : instance_.inputs(member)) {
            if (at(t).visited || at(t).colour != colour) continue;
            const Edge e{member, t, forward};
            if (!try_join(e)) waiting_.push_back(e);
          }
        }
      }
      if (round > 0 && members_.size() == before) break;
    }
  }

  const Instance& instance_;
  std::vector<int32_t> seeds_;
  ContractionGraph groups_;
  std::vector<Node> nodes_;
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
