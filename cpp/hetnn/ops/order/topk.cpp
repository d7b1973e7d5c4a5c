// topk: the largest or smallest elements along an axis, and where they stood.
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
  const bool largest = e.call.flag("largest"), sorted = e.call.flag("sorted");
  if (kept.size > lanes.size)
    fail(e.call, "topk_c1", text("k must be in [0, ", lanes.size, "], the size of the axis; got ", kept.size, "."));
  if (kept.size == 0) return;
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = values.values<T>();
    auto* where = indices.values<int64_t>();
    LaneOrder<T> order(lanes.size, largest);
    lanes.visit([&](int64_t number, int64_t first) {
      order.load(from + first, lanes.step);
      order.select(kept.size, sorted);
      const int64_t start = number / lanes.step * kept.size * lanes.step + number % lanes.step;
      for (int64_t k = 0; k < kept.size; ++k) {
        const int64_t source = order.place(k);
        to[start + k * lanes.step] = from[first + source * lanes.step];
        where[start + k * lanes.step] = source;
      }
    });
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
          .tolerance = 0,
          .samples = {"topk(f32[2,5,3]) {k = 2, axis = 1}", "topk(f32[n,4]) {k = 4, largest = false}",
                      "topk(f32[300]) {k = 3}"}};
}

}  // namespace hetnn::ops
