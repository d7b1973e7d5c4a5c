// What argmax and argmin share.
#pragma once

#include "hetnn/ops/batch.h"
#include "hetnn/ops/lanes.h"

namespace hetnn::ops {

inline std::vector<Type> infer_arg_extreme(const Call& call) {
  Shape y = call.input(0).shape;
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  if (y.empty()) return {{DType::i64, y}};
  if (y[static_cast<size_t>(axis)] == Dim(0) && !(elements(y, 0, axis) * elements(y, axis + 1) == Dim(0)))
    fail(call, text(call.op->name, "_c1"),
         text("no elements have no extreme; got ", to_string(call.input(0)), " along axis ", axis,
              ". Give elements along the axis."));
  if (call.flag("keepdim")) {
    y[static_cast<size_t>(axis)] = 1;
  } else {
    y.erase(y.begin() + axis);
  }
  return {{DType::i64, y}};
}

/// The first place of the element that is before all others: NaN, then as before(a, b) says.
template <typename Before>
void find_extremes(const Evaluation& e, Before before) {
  const View& x = e.input(0);
  const Lanes lanes = lanes_of(e.call, x.shape);
  auto* to = e.output().values<int64_t>();
  if (lanes.size == 0 && lanes.count() > 0)
    fail(e.call, text(e.call.op->name, "_c1"), "no elements have no extreme. Give elements along the axis.");
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    lanes.visit([&](int64_t lane, int64_t first) {
      int64_t best = 0;
      T kept = from[first];
      for (int64_t k = 1; k < lanes.size && kept == kept; ++k) {
        const T value = from[first + k * lanes.step];
        if (value == value && !before(value, kept)) continue;
        best = k;
        kept = value;
      }
      to[lane] = best;
    });
  });
}

/// The operator: attributes `axis` and `keepdim`, one flop an element.
inline OpDef arg_extreme(OpDef def) {
  def.inputs = {{"x", "any shape"}};
  def.traits |= static_cast<uint32_t>(Trait::wide);
  def.attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
               {"keepdim", AttrKind::boolean, false, "whether the axis stays, as 1"}};
  def.infer = infer_arg_extreme;
  def.keeps_batch = keeps_batch_beside_axis;
  def.work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape)}; };
  def.tolerance = 0;
  return def;
}

}  // namespace hetnn::ops
