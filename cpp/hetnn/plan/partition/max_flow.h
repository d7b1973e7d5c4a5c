// Maximum flow between two terminals on sparse graphs where most vertices touch a terminal. Internal to the
// partitioner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetnn::plan {

/// Incremental breadth-first search (Goldberg, Hed, Kaplan, Tarjan, Werneck: "Maximum flows by incremental
/// breadth-first search", ESA 2011): two trees grow from the terminals level by level; a saturated tree edge leaves an
/// orphan, which finds a new parent or sinks in level, so levels never fall and the work is bounded. Capacities are
/// integers, so the result is exact. No recursion.
class MaxFlow {
 public:
  explicit MaxFlow(int32_t vertices);

  int32_t add_vertex();
  /// Terminal capacities add up; what a vertex can pass from the source straight to the sink is flow at once.
  void add_terminals(int32_t v, int64_t from_source, int64_t to_sink);
  /// Capacity from u to v and back.
  void add_edge(int32_t u, int32_t v, int64_t forward, int64_t backward);

  /// The value of the minimum cut. Call once.
  int64_t solve();
  /// After solve: whether v is on the source's side of the cut found.
  bool on_source_side(int32_t v) const;

 private:
  enum Tree : uint8_t { kFree, kSource, kSink };

  struct Edge {
    int32_t u, v;
    int64_t forward, backward;
  };

  void build();
  /// Capacity left in the direction that tree growth from v along `arc` needs.
  int64_t residual(Tree tree, int32_t arc) const {
    return tree == kSource ? capacity_[static_cast<size_t>(arc)]
                           : capacity_[static_cast<size_t>(sister_[static_cast<size_t>(arc)])];
  }
  void grow(Tree tree);
  bool scan(Tree tree, int32_t v);
  void augment(int32_t bridge, int32_t source_end, int32_t sink_end);
  void adopt(Tree tree);
  void make_orphan(Tree tree, int32_t v);
  void attach(Tree tree, int32_t v, int32_t arc, int32_t level);

  int32_t vertices_;
  int64_t flow_ = 0;
  std::vector<Edge> edges_;
  /// Positive: left from the source. Negative: left to the sink.
  std::vector<int64_t> excess_;

  std::vector<int32_t> first_, head_, sister_;
  std::vector<int64_t> capacity_;

  std::vector<uint8_t> tree_;
  std::vector<int32_t> level_;
  /// The arc from a vertex to its parent; kRoot for a vertex at its terminal, kNone for an orphan.
  std::vector<int32_t> parent_;
  std::vector<int32_t> current_;
  /// By tree; the first of each is unused.
  std::array<std::vector<int32_t>, 3> active_, next_, orphans_;
  std::array<int32_t, 3> top_ = {0, 1, 1};
  /// The tree whose growing is under way, so that orphans may settle one level above its top.
  Tree growing_ = kFree;
  Tree exhausted_ = kFree;
};

}  // namespace hetnn::plan
