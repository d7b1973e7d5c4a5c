// The `depth` strategy: sets grow from the first unvisited node over edges that are continuous in depth; each set
// counts as one node from then on, and depths are those of the graph that is left.
#include <algorithm>
#include <numeric>
#include <queue>
#include <span>

#include "hetnn/plan/partition/problem/prefetch.h"
#include "hetnn/plan/partition/strategies/contraction.h"
#include "hetnn/plan/partition/strategies/parts.h"
#include "hetnn/plan/partition/strategies/strategies.h"

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

/// Grows one set after the other, also of nodes of the general processor.
class DepthGrowth {
 public:
  DepthGrowth(const Instance& instance, const std::vector<int32_t>& colour)
      : DepthGrowth(instance, colour, node_depths(instance)) {}

  std::vector<int32_t> run() {
    for (size_t k = 0; k < seeds_.size(); ++k) {
      if (far_) prefetch_seeds(k);
      if (at(seeds_[k]).colour < 0) continue;
      grow(seeds_[k]);
      if (reads_left_ > 0 && members_.size() > 1) collapse();
    }
    return parts_.numbering();
  }

 private:
  /// What growing asks of a neighbour, together so that it touches half a cache line.
  struct alignas(32) Node {
    /// Of a set that has grown, each member's is that of the set.
    int32_t depth = 0;
    /// Its device while it is in no set, else -1.
    int32_t colour = 0;
    /// Where its edges begin; they end where those of the next node begin.
    int32_t inputs = 0, consumers = 0;
    /// The last set that touched the node, and how many of its inputs and consumers are in that.
    int32_t set = 0;
    int32_t inputs_in_set = 0, consumers_in_set = 0;
  };
  struct Edge {
    int32_t member;
    int32_t neighbour;
    bool forward;
  };

  DepthGrowth(const Instance& instance, const std::vector<int32_t>& colour, const std::vector<int32_t>& depth)
      : instance_(instance),
        far_(neighbours_are_far(instance)),
        seeds_(seed_order(instance, depth)),
        parts_({instance.in_begin, instance.in_nodes, instance.out_begin, instance.out_nodes}, seeds_),
        nodes_(colour.size() + 1),
        next_member_(colour.size()),
        asked_(colour.size(), 0),
        reads_left_(instance.problem->depths.empty() ? kDepthReads : 0) {
    for (size_t v = 0; v < colour.size(); ++v)
      nodes_[v] = {depth[v], colour[v], instance.in_begin[v], instance.out_begin[v]};
    nodes_.back() = {0, -1, instance.in_begin.back(), instance.out_begin.back()};
    std::iota(next_member_.begin(), next_member_.end(), 0);
  }

  Node& at(int32_t v) { return nodes_[index(v)]; }
  std::span<const int32_t> inputs(int32_t v) {
    return {instance_.in_nodes.data() + at(v).inputs, instance_.in_nodes.data() + at(v + 1).inputs};
  }
  std::span<const int32_t> consumers(int32_t v) {
    return {instance_.out_nodes.data() + at(v).consumers, instance_.out_nodes.data() + at(v + 1).consumers};
  }

  enum class Near : uint8_t {
    nodes,    ///< the neighbours of a node
    edges,    ///< what the edges of those neighbours are that may still join
    further,  ///< the neighbours at those edges
  };

  [[gnu::always_inline]] void prefetch_edges(int32_t v) {
    prefetch(instance_.in_nodes.data() + at(v).inputs);
    prefetch(instance_.out_nodes.data() + at(v).consumers);
    parts_.prefetch_part(v);
  }

  template <typename Visit>
  [[gnu::always_inline]] void for_few_neighbours(int32_t v, const Visit& visit) {
    constexpr size_t kFew = 8;
    for (const std::span<const int32_t> list : {inputs(v), consumers(v)}) {
      for (const int32_t t : list.first(std::min(list.size(), kFew))) visit(t);
    }
  }

  /// Asks for what growing will read around a node, one step of the way; the step before must have arrived.
  template <Near kNear>
  [[gnu::always_inline]] void prefetch_around(int32_t v) {
    for_few_neighbours(
        v, [this](int32_t t) __attribute__((always_inline)) {
          if (kNear == Near::nodes) {
            prefetch(&at(t));
            parts_.prefetch_part(t);
          } else if (at(t).colour >= 0 && kNear == Near::edges) {
            prefetch_edges(t);
            parts_.prefetch_edges(t);
          } else if (at(t).colour >= 0) {
            for_few_neighbours(
                t, [this](int32_t w) __attribute__((always_inline)) {
                  prefetch(&at(w));
                  parts_.prefetch_part(w);
                });
          }
        });
  }

  [[gnu::always_inline]] void prefetch_seeds(size_t k) {
    constexpr size_t kAhead = 6;
    const auto seed = [&](size_t steps) { return later(seeds_, k, steps * kAhead); };
    prefetch(&at(seed(5)));
    if (at(seed(4)).colour >= 0) prefetch_edges(seed(4));
    if (at(seed(3)).colour >= 0) prefetch_around<Near::nodes>(seed(3));
    if (at(seed(2)).colour >= 0) prefetch_around<Near::edges>(seed(2));
    if (at(seed(1)).colour >= 0) prefetch_around<Near::further>(seed(1));
  }

  [[gnu::always_inline]] void prefetch_members(size_t k) {
    constexpr size_t kAhead = 2;
    if (k + 3 * kAhead < members_.size()) prefetch_around<Near::nodes>(members_[k + 3 * kAhead]);
    if (k + 2 * kAhead < members_.size()) prefetch_around<Near::edges>(members_[k + 2 * kAhead]);
    if (k + kAhead < members_.size()) prefetch_around<Near::further>(members_[k + kAhead]);
  }

  void join(int32_t v) {
    at(v).colour = -1;
    members_.push_back(v);
    const auto touch = [&](int32_t t) -> Node& {
      Node& node = at(t);
      if (node.set != set_) {
        node.set = set_;
        node.inputs_in_set = node.consumers_in_set = 0;
      }
      return node;
    };
    for (const int32_t t : consumers(v)) ++touch(t).inputs_in_set;
    for (const int32_t t : inputs(v)) ++touch(t).consumers_in_set;
  }

  /// Adds the neighbour when the edge is continuous and the set stays convex.
  bool try_join(const Edge& e) {
    const Node& t = at(e.neighbour);
    const int32_t step = t.depth - at(e.member).depth;
    const bool continuous = step == 1 || step == -1 ||
                            (e.forward ? t.inputs + t.inputs_in_set == at(e.neighbour + 1).inputs
                                       : t.consumers + t.consumers_in_set == at(e.neighbour + 1).consumers);
    if (!continuous) return false;
    const int32_t set = parts_.part(e.member);
    if (!(e.forward ? parts_.try_contract(set, e.neighbour) : parts_.try_contract(e.neighbour, set))) return false;
    join(e.neighbour);
    return true;
  }

  void grow(int32_t seed) {
    ++set_;
    members_.clear();
    waiting_.clear();
    const int32_t colour = at(seed).colour;
    join(seed);
    constexpr size_t kWaitingAhead = 8;
    size_t next = 0;
    for (int32_t round = 0; round < kGrowthRounds; ++round) {
      // Edges refused before come first, in the order they were met; then those of nodes that joined since.
      const size_t before = members_.size();
      size_t kept = 0;
      for (size_t k = 0; k < waiting_.size(); ++k) {
        const Edge e = waiting_[k];
        if (far_ && k + kWaitingAhead < waiting_.size()) prefetch(&at(waiting_[k + kWaitingAhead].neighbour));
        if (at(e.neighbour).colour >= 0 && !try_join(e)) waiting_[kept++] = e;
      }
      waiting_.resize(kept);
      for (; next < members_.size(); ++next) {
        const int32_t member = members_[next];
        if (far_) prefetch_members(next);
        for (const bool forward : {false, true}) {
          for (const int32_t t : forward ? consumers(member) : inputs(member)) {
            if (at(t).colour != colour) continue;
            const Edge e{member, t, forward};
            if (!try_join(e)) waiting_.push_back(e);
          }
        }
      }
      if (round > 0 && members_.size() == before) break;
    }
  }

  template <typename Visit>
  void for_each_member(int32_t part, const Visit& visit) {
    int32_t v = part;
    do {
      visit(v);
      v = next_member_[index(v)];
    } while (v != part);
  }

  /// The part of a node; one that is in no set yet is a part of its own.
  int32_t part_of(int32_t v) { return at(v).colour >= 0 ? v : parts_.part(v); }

  /// One more than that of the deepest part it reads.
  int32_t depth_of(int32_t part) {
    int32_t depth = 0;
    const bool alone = next_member_[index(part)] == part;
    for_each_member(part, [&](int32_t v) {
      reads_left_ -= static_cast<int64_t>(inputs(v).size()) + 1;
      for (const int32_t u : inputs(v)) {
        if (alone || part_of(u) != part) depth = std::max(depth, at(u).depth + 1);
      }
    });
    return depth;
  }

  /// The set that has grown becomes one node, and what lies behind it is as deep as that leaves it: parts are asked in
  /// their order, those alone that read a part whose depth has changed.
  void collapse() {
    for (size_t k = 0; k < members_.size(); ++k)
      next_member_[index(members_[k])] = members_[k + 1 < members_.size() ? k + 1 : 0];
    const int32_t set = parts_.part(members_.front());
    using Place = std::pair<int64_t, int32_t>;
    std::priority_queue<Place, std::vector<Place>, std::greater<>> queue;
    ++asking_;
    const auto ask_readers = [&](int32_t part) {
      for_each_member(part, [&](int32_t v) {
        for (const int32_t c : consumers(v)) {
          const int32_t reader = part_of(c);
          if (reader == part || asked_[index(reader)] == asking_) continue;
          asked_[index(reader)] = asking_;
          queue.emplace(parts_.place(reader), reader);
        }
      });
    };
    const auto deepen = [&](int32_t part, int32_t depth) {
      for_each_member(part, [&](int32_t v) { at(v).depth = depth; });
      ask_readers(part);
    };
    deepen(set, depth_of(set));
    while (!queue.empty() && reads_left_ > 0) {
      const int32_t part = queue.top().second;
      queue.pop();
      const int32_t depth = depth_of(part);
      if (depth != at(part).depth) deepen(part, depth);
    }
  }

  const Instance& instance_;
  const bool far_;
  std::vector<int32_t> seeds_;
  ContractionGraph parts_;
  std::vector<Node> nodes_;
  /// The members of a set that has grown, in a circle.
  std::vector<int32_t> next_member_;
  /// The last collapse that asked a part for its depth.
  std::vector<int32_t> asked_;
  int32_t asking_ = 0;
  int64_t reads_left_;
  std::vector<int32_t> members_;
  std::vector<Edge> waiting_;
  int32_t set_ = 0;
};

}  // namespace

std::vector<int32_t> node_depths(const Instance& instance) {
  std::vector<int32_t> depth(static_cast<size_t>(instance.size), 0);
  if (const std::vector<int32_t>& given = instance.problem->depths; !given.empty()) {
    for (size_t v = 0; v < depth.size(); ++v) depth[v] = given[index(instance.node_of[v])];
    return depth;
  }
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
