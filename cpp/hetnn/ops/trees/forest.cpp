// Forests of decision trees.
#include "hetnn/ops/trees/forest.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hetnn::ops {
namespace {

// Walks at once, so that one waits for memory while another compares.
constexpr int64_t kAbreast = 8;
// Rows that walk one tree after the other, so that it stays in the cache.
constexpr int64_t kBlock = 64;

constexpr std::pair<std::string_view, Aggregate> kAggregates[] = {
    {"sum", Aggregate::sum}, {"average", Aggregate::average}, {"min", Aggregate::min}, {"max", Aggregate::max}};

// A step from node `at`: false where it leads out of the tables, or back.
template <typename X>
[[gnu::always_inline]] inline bool step(std::span<const ForestNode> nodes, const X* splits, const X* x,
                                        uint32_t features, int32_t& at) {
  const ForestNode& node = nodes[static_cast<size_t>(at)];
  if (static_cast<uint32_t>(node.feature) >= features) [[unlikely]]
    return false;
  const X value = x[node.feature], split = splits[at];
  const int met = 3 - 3 * int{value < split} - 2 * int{value == split} - int{value > split};
  const int32_t next = (node.when >> met & 1) != 0 ? node.left : node.right;
  // Nodes behind this one alone, so that every walk ends.
  if (next >= 0 && (next <= at || static_cast<size_t>(next) >= nodes.size())) [[unlikely]]
    return false;
  at = next;
  return true;
}

}  // namespace

std::optional<Aggregate> aggregate_from_name(std::string_view name) {
  const auto* at = std::ranges::find(kAggregates, name, &std::pair<std::string_view, Aggregate>::first);
  return at == std::end(kAggregates) ? std::nullopt : std::optional(at->second);
}

template <typename X, typename W>
bool Forest<X, W>::find_leaves(const X* x, int64_t rows, int64_t first, int64_t last, int32_t* found) const {
  const auto most = static_cast<uint32_t>(std::min<int64_t>(features, INT32_MAX));
  std::array<int32_t, kAbreast> at;
  std::array<const X*, kAbreast> from;
  int64_t tree = first, row = 0;
  for (int64_t walks = (last - first) * rows; walks > 0; walks -= kAbreast, found += kAbreast) {
    const auto count = static_cast<size_t>(std::min(kAbreast, walks));
    bool walking = false;
    for (size_t k = 0; k < count; ++k) {
      at[k] = roots[static_cast<size_t>(tree)];
      from[k] = x + row * features;
      if (at[k] >= 0 && static_cast<size_t>(at[k]) >= nodes.size()) return false;
      walking |= at[k] >= 0;
      if (++row == rows) row = 0, ++tree;
    }
    while (walking) {
      walking = false;
      for (size_t k = 0; k < count; ++k) {
        if (at[k] < 0) continue;
        if (!step(nodes, splits.data(), from[k], most, at[k])) return false;
        walking |= at[k] >= 0;
      }
    }
    for (size_t k = 0; k < count; ++k) found[k] = ~at[k];
  }
  return true;
}

template <typename X, typename W>
void Forest<X, W>::begin(int64_t rows, W* y, bool* voted) const {
  std::fill_n(y, rows * width, W{0});
  std::fill_n(voted, rows * width, false);
}

template <typename X, typename W>
bool Forest<X, W>::add_leaf(int32_t leaf, W* y, bool* voted) const {
  if (leaf < 0 || leaf >= leaves()) return false;
  const auto number = static_cast<size_t>(leaf);
  const int64_t first = ends.empty() ? leaf : number == 0 ? 0 : ends[number - 1];
  const int64_t last = ends.empty() ? leaf + int64_t{1} : ends[number];
  if (first < 0 || last > static_cast<int64_t>(weights.size())) return false;
  for (int64_t k = first; k < last; ++k) {
    const int32_t column = columns.empty() ? 0 : columns[static_cast<size_t>(k)];
    if (column < 0 || column >= width) return false;
    const W weight = weights[static_cast<size_t>(k)];
    W& sum = y[column];
    switch (aggregate) {
      case Aggregate::sum:
      case Aggregate::average:
        sum += weight;
        break;
      case Aggregate::min:
        if (!voted[column] || weight < sum) sum = weight;
        break;
      case Aggregate::max:
        if (!voted[column] || weight > sum) sum = weight;
        break;
    }
    voted[column] = true;
  }
  return true;
}

template <typename X, typename W>
bool Forest<X, W>::add(const int32_t* found, int64_t count, int64_t rows, W* y, bool* voted) const {
  for (int64_t k = 0, place = 0; k < count; ++k) {
    if (!add_leaf(found[k], y + place, voted + place)) return false;
    place = (place + width) % (rows * width);
  }
  return true;
}

template <typename X, typename W>
void Forest<X, W>::end(int64_t rows, W* y) const {
  if (aggregate != Aggregate::average) return;
  for (int64_t k = 0; k < rows * width; ++k) y[k] /= static_cast<W>(roots.size());
}

template <typename X, typename W>
bool Forest<X, W>::evaluate(const X* x, int64_t rows, W* y, bool* voted) const {
  std::array<int32_t, kBlock> found;
  begin(rows, y, voted);
  const auto trees = static_cast<int64_t>(roots.size());
  for (int64_t row = 0; row < rows; row += kBlock) {
    const int64_t count = std::min(kBlock, rows - row), place = row * width, at_once = kBlock / count;
    for (int64_t tree = 0; tree < trees; tree += at_once) {
      const int64_t last = std::min(tree + at_once, trees);
      if (!find_leaves(x + row * features, count, tree, last, found.data()) ||
          !add(found.data(), (last - tree) * count, count, y + place, voted + place))
        return false;
    }
  }
  end(rows, y);
  return true;
}

template struct Forest<float, float>;
template struct Forest<float, double>;
template struct Forest<double, float>;
template struct Forest<double, double>;

}  // namespace hetnn::ops
