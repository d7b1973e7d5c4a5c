// topk: the largest or smallest elements along an axis, and where they stood.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/order/lane_order.h"
#include "hetnn/ops/order/order.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Dim k = call.integer("k"), size = axis_size(call);
  if (k.is_static() && (k.value() < 0 || (size.is_static() && k.value() > size.value()))) {
    fail(call, "topk_c1", text("k must be in [0, ", size, "], the size of the axis; got ", k, ". Check k."));
  }
  return infer_ordered(call, call.input(0).shape.empty() ? Dim(1) : k);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result values = e.output(0), indices = e.output(1);
  const Lanes lanes = lanes_of(e.call, x.shape), kept = lanes_of(e.call, values.shape);
  if (kept.size > lanes.size)
    fail(e.call, "topk_c1", text("k must be in [0, ", lanes.size, "], the size of the axis; got ", kept.size, "."));
  if (kept.size == 0) return;
  const Ordering ordering{lanes, kept.size, e.call.flag("largest"), true, e.call.flag("sorted")};
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::byte> memory(static_cast<size_t>(LaneOrder<T>::bytes(lanes.size)));
    order_lanes(ordering, 0, lanes.count(), x.values<T>().data(), values.values<T>(), indices.values<int64_t>(),
                memory.data());
  });
}

}  // namespace

OpDef define_topk() {
  return {.name = "topk",
          .doc = "The k largest or smallest elements along an axis, NaN as the largest; indices: where each stood.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"k", AttrKind::integer, std::nullopt, "how many"},
                    {"axis", AttrKind::integer, Dim(-1), "the axis"},
                    {"largest", AttrKind::boolean, true, "the largest, or the smallest"},
                    {"sorted", AttrKind::boolean, true, "whether they come in order"}},
          .outputs = {"values", "indices"},
          .traits = static_cast<uint32_t>(Trait::wide),
          .torch = {{"aten.topk.default", "x k axis largest sorted"}},
          .infer = infer,
          .meaning = meaning,
          .keeps_batch = keeps_batch_beside_axis,
          .tolerance = 0,
          .samples = {"topk(f32[2,5,3]) {k = 2, axis = 1}", "topk(f32[n,4]) {k = 4, largest = false}",
                      "topk(f32[300]) {k = 3}"}};
}

}  // namespace hetnn::ops
