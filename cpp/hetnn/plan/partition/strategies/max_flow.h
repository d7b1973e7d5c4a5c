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
  /// Sets room aside, so that nothing is copied while vertices and edges are added.
  void reserve(size_t vertices, size_t edges);

  int32_t add_vertex();
  /// Terminal capacities add up; what a vertex can pass from the source straight to the sink is flow at once.
  void add_terminals(int32_t v, int64_t from_source, int64_t to_sink);
  /// Capacity from u to v and back.
  void add_edge(int32_t u, int32_t v, int64_t forward, int64_t backward);

  /// The value of the minimum cut. Call once.
  int64_t solve();
  /// After solve: whether v is on the source's side of the cut found.
  bool on_source_side(int32_t v) const;
  /// After solve: what the flow left of a vertex's capacity from the source (positive) or to the sink (negative).
  int64_t left(int32_t v) const { return at(v).excess; }

 private:
  enum Tree : int32_t { kFree, kSource, kSink };

  struct Edge {
    int32_t u, v;
    int64_t forward, backward;
  };
  /// Capacity left from the vertex whose arc this is to `head`; the sister leads back.
  struct Arc {
    int64_t capacity;
    int32_t head, sister;
  };
  /// What a search asks of a vertex, together so that it touches half a cache line.
  struct alignas(32) Vertex {
    /// Positive: left from the source. Negative: left to the sink.
    int64_t excess = 0;
    /// Its arcs end where those of the next vertex begin.
    int32_t first = 0, current = 0;
    /// The arc to its parent; kRoot for a vertex at its terminal, kNone for an orphan.
    int32_t parent = 0;
    int32_t level = 0;
    Tree tree = kFree;
  };

  void build();
  void send_along_edges();
  Vertex& at(int32_t v) { return vertices_[static_cast<size_t>(v)]; }
  const Vertex& at(int32_t v) const { return vertices_[static_cast<size_t>(v)]; }
  Arc& arc(int32_t a) { return arcs_[static_cast<size_t>(a)]; }
  int32_t end_of(int32_t v) const { return at(v + 1).first; }
  /// Capacity left along the arc, or back along it.
  int64_t residual(const Arc& a, bool along) const {
    return along ? a.capacity : arcs_[static_cast<size_t>(a.sister)].capacity;
  }
  void grow(Tree tree);
  bool scan(Tree tree, int32_t v);
  void augment(int32_t bridge, int32_t source_end, int32_t sink_end);
  void adopt(Tree tree);
  void make_orphan(Tree tree, int32_t v);
  void attach(Tree tree, int32_t v, int32_t arc, int32_t level);

  int64_t flow_ = 0;
  std::vector<Edge> edges_;
  /// While edges are added, one for each vertex; one more from then on.
  std::vector<Vertex> vertices_;
  std::vector<Arc> arcs_;
  /// By tree; the first of each is unused.
  std::array<std::vector<int32_t>, 3> active_, next_, orphans_;
  std::array<int32_t, 3> top_ = {0, 1, 1};
  /// The tree whose growing is under way, so that orphans may settle one level above its top.
  Tree growing_ = kFree;
  Tree exhausted_ = kFree;
};

}  // namespace hetnn::plan
