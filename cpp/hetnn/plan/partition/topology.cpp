// Sorting a problem once, with as few visits to far memory as nodes in any order allow.
#include "hetnn/plan/partition/topology.h"

#include <algorithm>
#include <span>

#include "hetnn/plan/partition/fetch.h"

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
        nodes_(problem.ids.size() + 1),
        readers_(inputs_.size()),
        positions_(inputs_.size()) {
    // Counted and filled from the back in a table as small as can be: inputs stand anywhere.
    std::vector<int32_t> reader_begin(nodes_.size(), 0);
    for (const int32_t producer : inputs_) ++reader_begin[index(producer)];
    for (size_t v = 1; v < nodes_.size(); ++v) reader_begin[v] += reader_begin[v - 1];
    for (int32_t v = problem.size() - 1; v >= 0; --v) {
      for (int64_t i = problem.input_begin[index(v)]; i < problem.input_begin[index(v) + 1]; ++i)
        readers_[index(--reader_begin[index(inputs_[static_cast<size_t>(i)])])] = v;
    }
    for (size_t v = 0; v < nodes_.size(); ++v) {
      const auto first = static_cast<int32_t>(problem.input_begin[v]);
      const auto end = static_cast<int32_t>(problem.input_begin[std::min(v + 1, nodes_.size() - 1)]);
      nodes_[v] = {first, first, end, reader_begin[v]};
    }
  }

  void run() {
    for (size_t v = 0; v + 1 < nodes_.size(); ++v) {
      if (nodes_[v].first == nodes_[v].end) take(static_cast<int32_t>(v));
    }
    const std::vector<int32_t>& order = sorted_.node_of;
    for (size_t head = 0; head < order.size(); ++head) {
      fetch_readers(head);
      for (const int32_t reader : readers_of(order[head])) {
        Node& node = nodes_[index(reader)];
        positions_[index(node.next++)] = static_cast<int32_t>(head);
        if (node.next == node.end) take(reader);
      }
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
    /// Where its readers begin; they end where those of the next node begin.
    int32_t readers = 0;
  };

  std::span<const int32_t> readers_of(int32_t v) const {
    return {readers_.data() + nodes_[index(v)].readers, readers_.data() + nodes_[index(v) + 1].readers};
  }

  /// Asks for the readers of nodes that come soon, each step once the one before has arrived.
  [[gnu::always_inline]] void fetch_readers(size_t head) const {
    constexpr size_t kAhead = 6;
    const std::vector<int32_t>& order = sorted_.node_of;
    fetch(&nodes_[index(later(order, head, 3 * kAhead))]);
    fetch(readers_.data() + nodes_[index(later(order, head, 2 * kAhead))].readers);
    for (const int32_t reader : readers_of(later(order, head, kAhead))) fetch(&nodes_[index(reader)]);
  }

  void take(int32_t v) {
    const Node& node = nodes_[index(v)];
    sorted_.node_of.push_back(v);
    for (int32_t i = node.first; i < node.end; ++i) {
      if (i == node.first || positions_[index(i)] != sorted_.in_nodes.back())
        sorted_.in_nodes.push_back(positions_[index(i)]);
    }
    sorted_.in_begin.push_back(static_cast<int32_t>(sorted_.in_nodes.size()));
  }

  const std::vector<int32_t>& inputs_;
  Topology& sorted_;
  /// By index in the problem; one more than there are.
  std::vector<Node> nodes_;
  /// The readers of every node, and the positions of the inputs of every node.
  std::vector<int32_t> readers_, positions_;
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
