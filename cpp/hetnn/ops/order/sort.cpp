// sort: the elements along an axis in order, and where they stood.
#include "hetnn/ops/order/lane_order.h"
#include "hetnn/ops/order/order.h"

namespace hetnn::ops {
namespace {

// What torch sorts by digits, which keeps the order of equals.
bool is_sorted_by_digits(const View& x, bool descending) {
  constexpr int64_t kMany = 32768;
  return !descending && x.shape.size() == 1 && x.shape[0] >= kMany && is_integer(x.dtype);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result values = e.output(0), indices = e.output(1);
  const Lanes lanes = lanes_of(e.call, x.shape);
  const bool descending = e.call.flag("descending");
  const bool stable = e.call.flag("stable") || is_sorted_by_digits(x, descending);
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = values.values<T>();
    auto* where = indices.values<int64_t>();
    LaneOrder<T> order(lanes.size, descending);
    lanes.visit([&](int64_t, int64_t first) {
      order.load(from + first, lanes.step);
      order.sort();
      if (!stable && order.has_equals()) {
        order.load(from + first, lanes.step);
        order.sort_as_library();
      }
      for (int64_t k = 0; k < lanes.size; ++k) {
        const int64_t source = order.place(k);
        to[first + k * lanes.step] = from[first + source * lanes.step];
        where[first + k * lanes.step] = source;
      }
    });
  });
}

}  // namespace

OpDef define_sort() {
  return {
      .name = "sort",
      .doc =
          "The elements along an axis in order, NaN as the largest; indices: where each stood. Equals stay in the "
          "order that they had, or, if not stable, in the one in which torch leaves them on a CPU.",
      .inputs = {{"x", "any shape"}},
      .attrs = {{"axis", AttrKind::integer, Dim(-1), "the axis"},
                {"descending", AttrKind::boolean, false, "whether the largest comes first"},
                {"stable", AttrKind::boolean, true, "whether equals keep their order"}},
      .outputs = {"values", "indices"},
      .traits = static_cast<uint32_t>(Trait::wide),
      .torch = {{"aten.sort.default", "x axis descending stable=false"}, {"aten.sort.stable", "x - axis descending"}},
      .infer = [](const Call& call) { return infer_ordered(call, axis_size(call)); },
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"sort(f32[2,5,3]) {axis = 1}", "sort(f32[n,4]) {descending = true}", "sort(i64[6])",
                  "sort(bool[40]) {stable = false}", "sort(f32[2,70])",
                  "sort(i64[100]) {descending = true, stable = false}"}};
}

}  // namespace hetnn::ops
