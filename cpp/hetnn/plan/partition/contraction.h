// A graph whose nodes grow together into groups without ever closing a ring. Internal to the partitioner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetnn::plan {

/// Both directions of the edges of a graph, as offsets and neighbours. Duplicates are harmless.
struct EdgeLists {
  const std::vector<int32_t>& in_begin;
  const std::vector<int32_t>& in_nodes;
  const std::vector<int32_t>& out_begin;
  const std::vector<int32_t>& out_nodes;
};

/// Groups of nodes with an order in which every edge goes forward. Contracting two groups keeps the order by moving
/// only groups between the two, found by walking forward from one and backward from the other in turn until either
/// walk ends (as in Pearce and Kelly, "A dynamic topological sort algorithm", 2006), so a test costs no more than twice
/// the cheaper walk.
class ContractionGraph {
 public:
  /// Every node is a group. `order` lists the nodes so that every edge goes forward.
  ContractionGraph(EdgeLists edges, const std::vector<int32_t>& order);

  /// The group of a node, named by one of its nodes; the name changes when groups grow together.
  int32_t group(int32_t v);

  /// For an edge from a node of group `from` to a node of group `to`: contracts them when no other path leads from one
  /// to the other, so that no ring closes. False, and nothing changes, when there is such a path.
  bool try_contract(int32_t from, int32_t to);

  /// Per node: the number of its group, groups numbered along the order.
  std::vector<int32_t> numbering();

 private:
  /// One side of the search for another path.
  struct Walk {
    bool forward = true;
    int32_t start = 0;
    int32_t goal = 0;
    std::vector<int32_t> found;  // the start, then every group reached inside the window
    size_t head = 0;
    int32_t member = 0;
    int32_t edge = 0;
  };
  enum class Step : uint8_t { more, ended, met };

  void begin(Walk& walk, bool forward, int32_t start, int32_t goal);
  Step step(Walk& walk);
  void enter_member(Walk& walk, int32_t member);
  /// Moves the groups a walk has found to just behind (or before) the place of group `pivot`.
  void move_beside(const Walk& walk, int32_t pivot);
  void unlink(int32_t group);
  void insert_after(int32_t before, int32_t group, int64_t label);
  void renumber();

  EdgeLists edges_;
  std::vector<int32_t> parent_, member_count_, next_member_;
  /// The order: a list through the groups with labels that rise along it. Index size is the sentinel at both ends.
  std::vector<int32_t> before_, after_;
  std::vector<int64_t> label_;
  std::vector<int32_t> seen_forward_, seen_backward_;
  int32_t stamp_ = 0;
  Walk forward_, backward_;
};

}  // namespace hetnn::plan
