// Forests of decision trees: tables, the walk from roots to leaves, and what leaves add up to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hetnn::ops {

/// What one inner node is: four numbers of its table.
struct ForestNode {
  int32_t feature;  // which one it asks about
  int32_t when;     // bits: go left where the feature is 1 less than, 2 equal to, 4 greater than its split, 8 neither
  int32_t left;     // another node, behind this one; or, below 0, leaf ~left
  int32_t right;
};

enum class Aggregate : uint8_t { sum, average, min, max };
/// By name, or nullopt.
std::optional<Aggregate> aggregate_from_name(std::string_view name);

/// What trees are made of. X: element type of features and splits; W: of weights and sums. Nothing of it is trusted.
template <typename X, typename W>
struct Forest {
  std::span<const ForestNode> nodes;
  std::span<const X> splits;         // one a node
  std::span<const int32_t> roots;    // one a tree, in the order of summation: a node, or a leaf as in nodes
  std::span<const W> weights;        // those of leaf 0, then those of leaf 1 ...
  std::span<const int32_t> columns;  // where each weight goes; empty: to column 0
  std::span<const int32_t> ends;     // where the weights of each leaf end; empty: each leaf has one
  int64_t features = 0, width = 0;
  Aggregate aggregate = Aggregate::sum;

  int64_t leaves() const { return static_cast<int64_t>(ends.empty() ? weights.size() : ends.size()); }

  /// The leaves that `rows` rows of x come to in trees [first, last): those of the first tree, then those of the next.
  /// False where the tables lead out of themselves.
  bool find_leaves(const X* x, int64_t rows, int64_t first, int64_t last, int32_t* leaves) const;
  /// Begins `rows` rows of sums.
  void begin(int64_t rows, W* y, bool* voted) const;
  /// Adds `count` leaves, one a row and again from the first one. False where the tables lead out of themselves.
  bool add(const int32_t* leaves, int64_t count, int64_t rows, W* y, bool* voted) const;
  /// Ends `rows` rows of sums, to which one leaf of each tree was added.
  void end(int64_t rows, W* y) const;
  /// All of this for `rows` rows: the trees one after the other.
  bool evaluate(const X* x, int64_t rows, W* y, bool* voted) const;

 private:
  bool add_leaf(int32_t leaf, W* y, bool* voted) const;
};

/// Calls visit(X{}, W{}) with the element types of features and of weights, each f32 (or not: f64).
template <typename Visit>
void visit_forest(bool narrow_x, bool narrow_w, const Visit& visit) {
  if (narrow_x) return narrow_w ? visit(float{}, float{}) : visit(float{}, double{});
  return narrow_w ? visit(double{}, float{}) : visit(double{}, double{});
}

}  // namespace hetnn::ops
