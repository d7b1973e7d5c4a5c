// A graph whose nodes grow together into parts without ever closing a ring. Internal to the partitioner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hetnn/plan/partition/problem/prefetch.h"

namespace hetnn::plan {

/// Both directions of the edges of a graph, as offsets and neighbours. Duplicates are harmless.
struct EdgeLists {
  const std::vector<int32_t>& in_begin;
  const std::vector<int32_t>& in_nodes;
  const std::vector<int32_t>& out_begin;
  const std::vector<int32_t>& out_nodes;
};

/// Parts of nodes with an order in which every edge goes forward. Contracting two parts keeps the order by moving
/// only parts between the two, found by walking forward from one and backward from the other until either walk ends
/// (as in Pearce and Kelly, "A dynamic topological sort algorithm", 2006). Three things keep the walks short on graphs
/// with a few giant parts: a walk leaves parts of many edges for last, since the other walk may run into them from
/// the far side at no cost; the walk that has read fewer edges, counting those it would read next, goes on, so
/// that a test costs about twice the cheaper walk; and paths once found between giants are remembered, since nothing
/// but growing into one part ends them. A part forgets edges that have become internal or double.
class ContractionGraph {
 public:
  /// Every node is a part. `order` lists the nodes so that every edge goes forward.
  ContractionGraph(EdgeLists edges, const std::vector<int32_t>& order);

  /// The part of a node, named by one of its nodes; the name changes when parts grow together.
  int32_t part(int32_t v) {
    while (at(v).parent != v) {
      int32_t& up = at(v).parent;
      up = at(up).parent;
      v = up;
    }
    return v;
  }

  /// Where a part stands in the order: any edge goes to a higher place.
  int64_t place(int32_t part) { return at(part).label; }

  /// Asks early for what a test will read of a node; for its edges once that has arrived.
  [[gnu::always_inline]] void prefetch_part(int32_t v) { prefetch(&at(v)); }
  [[gnu::always_inline]] void prefetch_edges(int32_t v) {
    prefetch(neighbours_[0].data() + at(v).edges[0].begin);
    prefetch(neighbours_[1].data() + at(v).edges[1].begin);
  }

  /// For an edge from a node of part `from` to a node of part `to`: contracts them when no other path leads from one
  /// to the other, so that no ring closes. False, and nothing changes, when there is such a path.
  bool try_contract(int32_t from, int32_t to);

  /// Per node: the number of its part, parts numbered by their first node.
  std::vector<int32_t> numbering();

 private:
  /// The edges of one direction.
  struct Edges {
    /// Those of the node itself: neighbours_[begin .. end) of the direction.
    int32_t begin = 0, end = 0;
    /// Members of a part that have edges are linked in a circle: the next of them. Where the node that names the part
    /// has none itself, any member of the circle.
    int32_t next_member = 0;
    /// How many edges all members of the part have left.
    int32_t count = 0;
  };
  /// A node, and the part it names: one cache line, as both are met anywhere in memory.
  struct alignas(64) Part {
    /// Labels ascend along the order.
    int64_t label = 0;
    /// The part a node is in, or one that is on the way there.
    int32_t parent = 0;
    int32_t members = 1;
    /// The last search that found it, of either side: no part is found by both.
    int32_t seen = 0;
    int32_t scan = 0;
    /// Neighbours in the order.
    int32_t before = 0, after = 0;
    /// Index 1 is forward, 0 backward.
    Edges edges[2];
  };
  /// A path from one part to another: it is there as long as both are parts of their own. While the witness, if there
  /// is one, is in neither of the two, it is more than an edge between them.
  struct Path {
    int32_t from = -1, to = -1;
    int32_t witness = -1;
  };
  /// A part that a walk has found, and the last giant on the way to it, itself included: a place in the walk's list of
  /// giants, or -1.
  struct Find {
    int32_t part, giant;
  };
  /// A part of very many edges, and the giant before it.
  struct Giant {
    int32_t part, before;
  };
  /// A part that a walk leaves for last.
  struct Large {
    int32_t edges, part, find;
    bool operator<(const Large& other) const { return edges != other.edges ? edges > other.edges : part < other.part; }
  };
  /// One side of the search for another path.
  struct Walk {
    int32_t start = 0;
    int32_t goal = 0;
    std::vector<Find> found;  // the start, then every part reached inside the window
    size_t head = 0;
    std::vector<Large> large;  // a heap, fewest edges first
    std::vector<Giant> giants;
    int64_t work = 0;
  };

  Part& at(int32_t g) { return parts_[static_cast<size_t>(g)]; }
  /// A member of the part's circle, if the part has edges.
  int32_t edge_member(int32_t g, size_t side) {
    const Edges& edges = at(g).edges[side];
    return edges.begin < edges.end ? g : edges.next_member;
  }
  /// Makes `member` the one by which the circle is entered, unless the node that names the part is in it.
  void enter_at(int32_t g, size_t side, int32_t member) {
    Edges& edges = at(g).edges[side];
    if (edges.begin == edges.end) edges.next_member = member;
  }
  int32_t size() const { return static_cast<int32_t>(parts_.size()) - 1; }
  template <bool kForward>
  Walk& walk() {
    return walks_[kForward ? 1 : 0];
  }
  template <bool kForward>
  void begin(int32_t start, int32_t goal);
  /// Whether the walk meets the other in what it has found, or by a known path from there.
  template <bool kForward>
  bool discover(int32_t g, int32_t giant);
  /// The edges that the walk would read next; -1 when it has ended.
  template <bool kForward>
  int32_t next_edges();
  /// Reads them; true when the walk has met the goal or the other walk.
  template <bool kForward>
  bool advance();
  template <bool kForward>
  bool expand(int32_t find);
  bool search(int32_t from, int32_t to);
  /// Where a path between the two is remembered, if it is.
  Path& known_path(int32_t from, int32_t to);
  /// Whether a search has found a path between the two before, other than the edge between them, that is still there.
  bool knows_another_path(int32_t from, int32_t to);
  /// Whether the walk meets the other by a known path from (or to) `giant`, a part it has found.
  template <bool kForward>
  bool must_meet(int32_t giant);
  /// Remembers the paths between the giant parts on the way from a find of one walk to a find of the other.
  template <bool kForward>
  void remember(int32_t mine, int32_t theirs);
  /// Moves the parts a walk has found to just behind (or before) the place of part `pivot`.
  template <bool kForward>
  void move_beside(int32_t pivot);
  void unite(int32_t from, int32_t to, int32_t place);
  void unlink(int32_t g);
  void insert_after(int32_t before, int32_t g, int64_t label);
  /// Changes labels around the gap behind `place` so that `count` parts fit into it.
  void make_room(int32_t place, int64_t count);
  int32_t sentinel() const { return size(); }

  /// Index 1 is forward, 0 backward.
  std::vector<int32_t> neighbours_[2];
  /// One more than there are nodes: the last stands at both ends of the order.
  std::vector<Part> parts_;
  /// By hash of the pair; a newer path takes the place of an older one.
  std::vector<Path> known_paths_;
  /// A part on the path that the last search found.
  int32_t witness_ = -1;
  int32_t stamp_ = 0;
  /// The stamp of what the current search finds backward; one more marks what it finds forward.
  int32_t search_ = 0;
  Walk walks_[2];
  std::vector<std::pair<int64_t, int32_t>> moved_;
};

}  // namespace hetnn::plan
