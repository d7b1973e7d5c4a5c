// sort: the elements along an axis in order, and where they stood.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/order/lane_order.h"
#include "hetnn/ops/order/order.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result values = e.output(0), indices = e.output(1);
  const Lanes lanes = lanes_of(e.call, x.shape);
  const bool descending = e.call.flag("descending");
  const bool stable = e.call.flag("stable") || is_sorted_by_digits(x.dtype, x.shape, descending);
  const Ordering ordering{lanes, lanes.size, descending, false, stable};
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::byte> memory(static_cast<size_t>(LaneOrder<T>::bytes(lanes.size)));
    order_lanes(ordering, 0, lanes.count(), x.values<T>().data(), values.values<T>(), indices.values<int64_t>(),
                memory.data());
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
      .keeps_batch = keeps_batch_beside_axis,
      .tolerance = 0,
      .samples = {"sort(f32[2,5,3]) {axis = 1}", "sort(f32[n,4]) {descending = true}", "sort(i64[6])",
                  "sort(bool[40]) {stable = false}", "sort(f32[2,70])",
                  "sort(i64[100]) {descending = true, stable = false}"}};
}

}  // namespace hetnn::ops
