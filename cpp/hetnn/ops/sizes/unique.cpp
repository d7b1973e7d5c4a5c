// unique: the slices of a tensor that differ.
#include <algorithm>
#include <numeric>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/order/lane_order.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// x [A...,S,B...] -> y [A...,count,B...], first [count], inverse [S], counts [count].
std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.shape.empty())
    fail(call, "unique_c1", "the input has rank 0, so there is no axis to compare along. Reshape it.");
  const auto axis = static_cast<size_t>(axis_of(call, call.integer("axis"), x.rank()));
  const Dim count = call.integer("count");
  Shape y = x.shape;
  y[axis] = count;
  return {{x.dtype, y}, {DType::i64, {count}}, {DType::i64, {x.shape[axis]}}, {DType::i64, {count}}};
}

// The slices along an axis, as rows: element e of slice s is at(s, e).
template <typename T>
struct Slices {
  Slices(const View& x, size_t axis) : values(x.values<T>().data()), size(x.shape[axis]) {
    for (size_t k = axis + 1; k < x.shape.size(); ++k) inner *= x.shape[k];
    for (size_t k = 0; k < axis; ++k) outer *= x.shape[k];
  }
  T at(int64_t slice, int64_t elem) const { return values[((elem / inner) * size + slice) * inner + elem % inner]; }
  // NaN stands behind all numbers.
  int compare(int64_t a, int64_t b) const {
    for (int64_t e = 0; e < outer * inner; ++e) {
      const T x = at(a, e), y = at(b, e);
      if (x < y || (x == x && y != y)) return -1;
      if (y < x || (y == y && x != x)) return 1;
    }
    return 0;
  }
  // Whether they are equal, number by number; `equal_nan`: NaN equals NaN, else nothing.
  bool same(int64_t a, int64_t b, bool equal_nan) const {
    for (int64_t e = 0; e < outer * inner; ++e) {
      const T x = at(a, e), y = at(b, e);
      if (!(x == y) && !(equal_nan && x != x && y != y)) return false;
    }
    return true;
  }

  const T* values;
  int64_t size, inner = 1, outer = 1;
};

// Of every group of equal slices its first member, and of every slice its group.
struct Groups {
  std::vector<int64_t> first, inverse, counts;
};

template <typename T>
Groups groups_of(const Slices<T>& slices, bool neighbours, bool sorted, bool equal_nan) {
  const auto size = static_cast<size_t>(slices.size);
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  if (!neighbours && slices.outer * slices.inner == 1) {
    std::vector<std::byte> memory(static_cast<size_t>(LaneOrder<T>::bytes(slices.size)));
    LaneOrder<T> lane(slices.size, false, memory.data());
    lane.load(slices.values, 1);
    lane.sort();
    for (size_t k = 0; k < size; ++k) order[k] = lane.place(static_cast<int64_t>(k));
  } else if (!neighbours) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return slices.compare(a, b) < 0; });
  }
  Groups out;
  out.inverse.resize(size);
  for (size_t k = 0; k < size; ++k) {
    if (k == 0 || !slices.same(order[k - 1], order[k], equal_nan)) {
      out.first.push_back(order[k]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(out.first.size()) - 1;
  }
  if (neighbours || sorted) return out;
  // In the order of their first members.
  std::vector<int64_t> by_first(out.first.size()), place(out.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  const auto at = [](auto& list, int64_t k) -> auto& { return list[static_cast<size_t>(k)]; };
  std::sort(by_first.begin(), by_first.end(),
            [&](int64_t a, int64_t b) { return at(out.first, a) < at(out.first, b); });
  Groups moved;
  for (const int64_t group : by_first) {
    at(place, group) = static_cast<int64_t>(moved.first.size());
    moved.first.push_back(at(out.first, group));
    moved.counts.push_back(at(out.counts, group));
  }
  for (const int64_t group : out.inverse) moved.inverse.push_back(at(place, group));
  return moved;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Slices<T> slices(x, axis);
    const Groups groups = groups_of(slices, e.call.flag("neighbours"), e.call.flag("sorted"), e.call.flag("equal_nan"));
    const auto count = static_cast<int64_t>(groups.first.size());
    define(e, "count", count);
    std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
    shape[axis] = count;
    T* to = e.output(0, shape).template values<T>();
    for (int64_t o = 0; o < slices.outer; ++o) {
      for (const int64_t slice : groups.first)
        to = std::copy_n(slices.values + (o * slices.size + slice) * slices.inner, slices.inner, to);
    }
    std::ranges::copy(groups.first, e.output(1, {count}).template values<int64_t>());
    std::ranges::copy(groups.inverse, e.output(2).template values<int64_t>());
    std::ranges::copy(groups.counts, e.output(3, {count}).template values<int64_t>());
  });
}

}  // namespace

OpDef define_unique() {
  return {.name = "unique",
          .doc =
              "The slices of x along an axis that differ, ascending; where each stands first, which of them every "
              "slice of x is, and how many are alike. NaN stands behind all numbers.",
          .inputs = {{"x", "rank 1 or more"}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                    {"sorted", AttrKind::boolean, true, "ascending; else in the order in which they stand in x"},
                    {"neighbours", AttrKind::boolean, false,
                     "slices are alike only where no other lies between; they stay in their order"},
                    {"equal_nan", AttrKind::boolean, false, "NaN equals NaN; else it equals nothing"},
                    found_size("count", "how many differ")},
          .outputs = {"y", "first", "inverse", "counts"},
          .traits = static_cast<uint32_t>(Trait::wide),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"unique(i32[n]) {count = found}", "unique(f32[3,5]) {axis = -1, count = found}",
                      "unique(i64[7]) {sorted = false, count = found}",
                      "unique(bool[6]) {neighbours = true, count = found}",
                      "unique(f32[9]) {equal_nan = true, count = found}"}};
}

}  // namespace hetnn::ops
