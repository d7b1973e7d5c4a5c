// Sorting a problem once, with as few visits to far memory as nodes in any order allow.
#include "hetnn/plan/partition/problem/topology.h"

#include <algorithm>
#include <limits>
#include <span>

#include "hetnn/plan/partition/problem/prefetch.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

bool stands_sorted(const Problem& problem) {
  for (int32_t v = 0; v < problem.size(); ++v) {
    for (int64_t i = problem.input_begin[index(v)]; i < problem.input_begin[index(v) + 1]; ++i)
      if (problem.inputs[static_cast<size_t>(i)] >= v) return false;
  }
  return true;
}

/// Takes nodes first in, first out as the last of their inputs is taken. A node meets its inputs in ascending order, so
/// when it is taken its edges are sorted and near: nothing is looked up again by index in the problem.
class Sorter {
 public:
  Sorter(const Problem& problem, Topology& sorted)
      : inputs_(problem.inputs),
        sorted_(sorted),
        nodes_(problem.ids.size()),
        readers_(inputs_.size()),
        positions_(inputs_.size()) {
    // Counted and filled from the back in a table as small as can be: inputs stand anywhere.
    std::vector<int32_t> reader_begin(nodes_.size() + 1, 0);
    for (const int32_t producer : inputs_) ++reader_begin[index(producer)];
    for (size_t v = 1; v < reader_begin.size(); ++v) reader_begin[v] += reader_begin[v - 1];
    for (int32_t v = problem.size() - 1; v >= 0; --v) {
      for (int64_t i = problem.input_begin[index(v)]; i < problem.input_begin[index(v) + 1]; ++i)
        readers_[index(--reader_begin[index(inputs_[static_cast<size_t>(i)])])] = v;
    }
    for (size_t v = 0; v < nodes_.size(); ++v) {
      const auto first = static_cast<int32_t>(problem.input_begin[v]);
      const auto begin = index(reader_begin[v]);
      const auto end = index(reader_begin[v + 1]);
      nodes_[v] = {first, first, static_cast<int32_t>(problem.input_begin[v + 1]), kNobody};
      if (end - begin == 1) nodes_[v].readers = ~readers_[begin];
      if (end - begin < 2) continue;
      nodes_[v].readers = static_cast<int32_t>(begin);
      readers_[end - 1] = ~readers_[end - 1];
    }
  }

  void run() {
    for (size_t v = 0; v < nodes_.size(); ++v) {
      if (nodes_[v].first == nodes_[v].end) take(static_cast<int32_t>(v), {});
    }
    const std::vector<int32_t>& order = sorted_.node_of;
    for (size_t head = 0; head < order.size(); ++head) {
      prefetch_readers(head);
      if (head + 1 == order.size()) prefetch_downstream(order[head]);
      const auto position = static_cast<int32_t>(head);
      for_each_reader(order[head], [&](int32_t reader) {
        Node& node = nodes_[index(reader)];
        const auto inputs = index(node.end - node.first);
        if (inputs > 1) positions_[index(node.next)] = position;
        if (++node.next == node.end) take(reader, {inputs > 1 ? &positions_[index(node.first)] : &position, inputs});
      });
    }
  }

  /// After a run that did not take every node: each node that is left has an input that is left, so walking back must
  /// meet itself.
  std::vector<int32_t> cycle() const {
    const auto left = [&](int32_t v) { return nodes_[index(v)].next < nodes_[index(v)].end; };
    int32_t at = 0;
    while (!left(at)) ++at;
    std::vector<int32_t> seen_at(nodes_.size(), -1);
    std::vector<int32_t> walk;
    while (seen_at[index(at)] < 0) {
      seen_at[index(at)] = static_cast<int32_t>(walk.size());
      walk.push_back(at);
      const Node& node = nodes_[index(at)];
      at = *std::find_if(inputs_.begin() + node.first, inputs_.begin() + node.end, left);
    }
    std::vector<int32_t> found(walk.begin() + seen_at[index(at)], walk.end());
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  /// What taking nodes asks of one, together so that it touches one cache line.
  struct Node {
    /// Its inputs, and where the position of the next one that is taken goes.
    int32_t first = 0, next = 0, end = 0;
    /// The complement of its only reader, or where its readers begin; the complement of the last ends those.
    int32_t readers = 0;
  };
  static constexpr int32_t kNobody = std::numeric_limits<int32_t>::min();

  template <typename Visit>
  [[gnu::always_inline]] void for_each_reader(int32_t v, const Visit& visit) const {
    const int32_t readers = nodes_[index(v)].readers;
    if (readers == kNobody) return;
    if (readers < 0) return visit(~readers);
    for (const int32_t* reader = &readers_[index(readers)];; ++reader) {
      if (*reader < 0) return visit(~*reader);
      visit(*reader);
    }
  }

  /// Asks for the readers of nodes that come soon, each step once the one before has arrived.
  [[gnu::always_inline]] void prefetch_readers(size_t head) const {
    constexpr size_t kAhead = 6;
    const std::vector<int32_t>& order = sorted_.node_of;
    prefetch(&nodes_[index(later(order, head, 3 * kAhead))]);
    const int32_t readers = nodes_[index(later(order, head, 2 * kAhead))].readers;
    if (readers >= 0) prefetch(&readers_[index(readers)]);
    for_each_reader(
        later(order, head, kAhead), [&](int32_t reader)
                                        __attribute__((always_inline)) { prefetch(&nodes_[index(reader)]); });
  }

  /// The same where no other node waits: asks for what lies down from this one, along first readers.
  [[gnu::always_inline]] void prefetch_downstream(int32_t v) {
    constexpr size_t kLargest = size_t{1} << 17, kOften = 1024;
    if (far_down_.empty() && nodes_.size() > kLargest && ++alone_ == kOften) find_downstream();
    if (far_down_.empty()) return;
    prefetch(&nodes_[index(far_down_[index(v)])]);
    for_each_reader(
        down_[index(v)], [&](int32_t reader) __attribute__((always_inline)) { prefetch(&nodes_[index(reader)]); });
  }

  /// By doubling: what is 2k steps down is k steps down from what is k steps down. Unlike steps one by one, reads of
  /// one pass do not wait for each other.
  void find_downstream() {
    constexpr int kDoublings = 4;
    down_.resize(nodes_.size());
    far_down_.resize(nodes_.size());
    for (size_t v = 0; v < nodes_.size(); ++v) {
      const int32_t readers = nodes_[v].readers;
      int32_t& down = far_down_[v];
      down = readers < 0 ? ~readers : readers_[index(readers)];
      if (readers == kNobody) down = static_cast<int32_t>(v);
    }
    for (int k = 0; k < kDoublings; ++k) {
      std::swap(down_, far_down_);
      for (size_t v = 0; v < nodes_.size(); ++v) far_down_[v] = down_[index(down_[v])];
    }
  }

  /// `inputs` are the positions of its inputs, ascending.
  void take(int32_t v, std::span<const int32_t> inputs) {
    sorted_.node_of.push_back(v);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (k == 0 || inputs[k] != sorted_.in_nodes.back()) sorted_.in_nodes.push_back(inputs[k]);
    }
    sorted_.in_begin.push_back(static_cast<int32_t>(sorted_.in_nodes.size()));
  }

  const std::vector<int32_t>& inputs_;
  Topology& sorted_;
  /// By index in the problem.
  std::vector<Node> nodes_;
  /// The readers of every node that has several, and the positions of the inputs of every node that has several.
  std::vector<int32_t> readers_, positions_;
  /// How often a node was taken while no other waited; once that was often, what is eight and sixteen first readers
  /// down from each node.
  size_t alone_ = 0;
  std::vector<int32_t> down_, far_down_;
};

/// The order is the problem's own.
void take_as_it_stands(const Problem& problem, Topology& sorted) {
  for (int32_t v = 0; v < problem.size(); ++v) {
    sorted.node_of.push_back(v);
    const auto first = static_cast<std::ptrdiff_t>(sorted.in_nodes.size());
    sorted.in_nodes.insert(sorted.in_nodes.end(), problem.inputs.begin() + problem.input_begin[index(v)],
                           problem.inputs.begin() + problem.input_begin[index(v) + 1]);
    std::sort(sorted.in_nodes.begin() + first, sorted.in_nodes.end());
    sorted.in_nodes.erase(std::unique(sorted.in_nodes.begin() + first, sorted.in_nodes.end()), sorted.in_nodes.end());
    sorted.in_begin.push_back(static_cast<int32_t>(sorted.in_nodes.size()));
  }
}

void turn_edges(Topology& sorted) {
  const size_t n = sorted.node_of.size();
  sorted.out_begin.assign(n + 1, 0);
  for (const int32_t u : sorted.in_nodes) ++sorted.out_begin[index(u) + 1];
  for (size_t v = 0; v < n; ++v) sorted.out_begin[v + 1] += sorted.out_begin[v];
  sorted.out_nodes.resize(sorted.in_nodes.size());
  std::vector<int32_t> fill(sorted.out_begin.begin(), sorted.out_begin.end() - 1);
  for (size_t v = 0; v < n; ++v) {
    for (int32_t i = sorted.in_begin[v]; i < sorted.in_begin[v + 1]; ++i)
      sorted.out_nodes[index(fill[index(sorted.in_nodes[index(i)])]++)] = static_cast<int32_t>(v);
  }
}

}  // namespace

Topology sort_graph(const Problem& problem, std::vector<int32_t>& cycle) {
  Topology sorted;
  sorted.node_of.reserve(problem.ids.size());
  sorted.in_begin.reserve(problem.ids.size() + 1);
  sorted.in_begin.push_back(0);
  sorted.in_nodes.reserve(problem.inputs.size());
  cycle.clear();
  if (stands_sorted(problem)) {
    take_as_it_stands(problem, sorted);
  } else {
    Sorter sorter(problem, sorted);
    sorter.run();
    if (sorted.node_of.size() != problem.ids.size()) {
      cycle = sorter.cycle();
      return sorted;
    }
  }
  turn_edges(sorted);
  return sorted;
}

}  // namespace hetnn::plan
