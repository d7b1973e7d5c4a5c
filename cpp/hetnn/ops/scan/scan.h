// What scans share: each element becomes what its lane holds up to there.
#pragma once

#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/lanes.h"

namespace hetnn::ops {

/// y[k] = write(step(... step(step(initial, x[0]), x[1]) ..., x[k])) along the axis, joined in the type of `initial`;
/// backwards with attribute `reverse`; without x[k] itself with attribute `exclusive`.
template <typename T, typename A, typename Step>
void scan(const Evaluation& e, A initial, Step step) {
  const View& x = e.input(0);
  const T* from = x.values<T>().data();
  T* to = e.output().template values<T>();
  const Lanes lanes = lanes_of(e.call, x.shape);
  const bool reverse = e.call.flag("reverse"), exclusive = e.call.flag("exclusive");
  lanes.visit([&](int64_t, int64_t first) {
    A so_far = initial;
    for (int64_t k = 0; k < lanes.size; ++k) {
      const int64_t at = first + (reverse ? lanes.size - 1 - k : k) * lanes.step;
      if (exclusive) to[at] = static_cast<T>(so_far);
      so_far = step(so_far, from[at]);
      if (!exclusive) to[at] = static_cast<T>(so_far);
    }
  });
}

/// The same for sums and products, joined in Sum<T>.
template <typename Step>
void scan_sums(const Evaluation& e, int initial, Step step) {
  visit_wide(e.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    scan<T>(e, static_cast<S>(initial), [step](S so_far, T x) { return step(so_far, static_cast<S>(x)); });
  });
}

/// values[k] = the element before all others of x[0] ... x[k], NaN before all, the last of equals; indices[k] = where.
template <typename Before>
void scan_extremes(const Evaluation& e, Before before) {
  const View& x = e.input(0);
  const Result values = e.output(0), indices = e.output(1);
  const Lanes lanes = lanes_of(e.call, x.shape);
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = values.values<T>();
    auto* where = indices.values<int64_t>();
    lanes.visit([&](int64_t, int64_t first) {
      int64_t best = 0;
      for (int64_t k = 0; k < lanes.size; ++k) {
        const int64_t at = first + k * lanes.step;
        const T value = from[at], kept = from[first + best * lanes.step];
        if (value != value || (kept == kept && !before(kept, value))) best = k;
        to[at] = from[first + best * lanes.step];
        where[at] = best;
      }
    });
  });
}

/// The operator: attributes `axis`, `exclusive`, `reverse`; one flop an element.
inline OpDef scan_op(OpDef def) {
  def.inputs = {{"x", "any shape"}};
  def.traits |= static_cast<uint32_t>(Trait::wide);
  def.attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
               {"exclusive", AttrKind::boolean, false, "whether an element leaves itself out"},
               {"reverse", AttrKind::boolean, false, "whether it runs from the end"}};
  def.infer = [](const Call& call) {
    axis_of(call, call.integer("axis"), call.input(0).rank());
    return std::vector<Type>{{call.input(0).dtype, call.input(0).shape}};
  };
  def.work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape)}; };
  def.keeps_batch = keeps_batch_beside_axis;
  return def;
}

/// The operator with the values and their places.
inline OpDef extreme_scan_op(OpDef def) {
  def.inputs = {{"x", "any shape"}};
  def.traits |= static_cast<uint32_t>(Trait::wide);
  def.attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"}};
  def.outputs = {"values", "indices"};
  def.infer = [](const Call& call) {
    axis_of(call, call.integer("axis"), call.input(0).rank());
    return std::vector<Type>{{call.input(0).dtype, call.input(0).shape}, {DType::i64, call.input(0).shape}};
  };
  def.tolerance = 0;
  return def;
}

}  // namespace hetnn::ops
