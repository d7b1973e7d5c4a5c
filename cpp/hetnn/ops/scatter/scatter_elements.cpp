// scatter_elements: x with single elements along an axis replaced by, or joined with, others.
#include <algorithm>
#include <limits>

#include "hetnn/ops/elementwise/vocabulary.h"
#include "hetnn/ops/scatter/elements.h"

namespace hetnn::ops {
namespace {

enum class Join : uint8_t { none, add, mul, mean, max, min };

Join join_of(const Call& call) {
  constexpr std::string_view kNames[] = {"none", "add", "mul", "mean", "max", "min"};
  const auto* at = std::ranges::find(kNames, call.string("reduce"));
  if (at == std::end(kNames)) {
    fail(call, "scatter_elements_c4",
         text("reduce must be none, add, mul, mean, max or min; got ", call.string("reduce"), "."));
  }
  return static_cast<Join>(at - std::begin(kNames));
}

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &indices = call.input(1), &updates = call.input(2);
  check_indices(call);
  join_of(call);
  const int axis = axis_of(call, call.integer("axis"), x.rank());
  bool fits = x.rank() == updates.rank() && broadcast(indices.shape, updates.shape) == updates.shape;
  for (int k = 0; fits && k < x.rank(); ++k) {
    const Dim &size = x.shape[static_cast<size_t>(k)], &of = updates.shape[static_cast<size_t>(k)];
    fits = k == axis || !size.is_static() || !of.is_static() || of.value() <= size.value();
  }
  if (!fits || x.dtype != updates.dtype) {
    fail(call, "scatter_elements_c2",
         text("updates must have x's type and rank and be no larger but along axis ", axis,
              ", and indices broadcast to them; got x ", to_string(x), ", indices ", to_string(indices),
              " and updates ", to_string(updates), "."));
  }
  return {{x.dtype, x.shape}};
}

template <typename W>
W joined(Join join, W a, W b) {
  using namespace vocabulary;  // NOLINT(google-build-using-namespace): integers wrap as in formulas
  switch (join) {
    case Join::none:
      return b;
    case Join::add:
    case Join::mean:
      return Add(a, b);
    case Join::mul:
      return Mul(a, b);
    case Join::max:
      return MaxNan(a, b);
    case Join::min:
      return MinNan(a, b);
  }
  return b;
}

// What changes nothing when it is joined with.
template <typename W>
W neutral(Join join) {
  using Limits = std::numeric_limits<W>;
  if (join == Join::mul) return W(1);
  if (join == Join::max) return Limits::has_infinity ? static_cast<W>(-Limits::infinity()) : Limits::lowest();
  if (join == Join::min) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return W(0);
}

template <typename W>
W divided(W sum, int64_t count) {
  if constexpr (std::is_floating_point_v<W>) return sum / static_cast<W>(count);
  return static_cast<W>(vocabulary::FloorDivide<int64_t>(static_cast<int64_t>(sum), count));
}

void meaning(const Evaluation& e) {
  const View &x = e.input(0), &indices = e.input(1), &updates = e.input(2);
  const Result y = e.output();
  const Join join = join_of(e.call);
  const int axis = axis_of(e.call, e.call.integer("axis"), x.rank());
  const auto at_axis = static_cast<size_t>(axis);
  const int64_t size = size_along(e.call, x), step = x.rank() == 0 ? 1 : strides_of(x.shape)[at_axis];
  const std::vector<int64_t> places = positions_in(indices, size);
  copy(x, y);
  const auto each = [&](auto body) {
    nest<3>(updates.shape,
            {strides_of(updates.shape), broadcast_strides(indices.shape, updates.shape), strides_across(x.shape, axis)},
            [&](int64_t from, int64_t index, int64_t lane) {
              body(lane + places[static_cast<size_t>(index)] * step, from);
            });
  };
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    T* to = y.values<T>();
    const T* from = updates.values<T>().data();
    if (join != Join::none && !e.call.flag("include_self"))
      each([&](int64_t at, int64_t) { to[at] = static_cast<T>(neutral<W>(join)); });
    each([&](int64_t at, int64_t k) {
      to[at] = static_cast<T>(joined<W>(join, static_cast<W>(to[at]), static_cast<W>(from[k])));
    });
    if (join != Join::mean) return;
    std::vector<int64_t> counts(static_cast<size_t>(y.elems()), e.call.flag("include_self") ? 1 : 0);
    each([&](int64_t at, int64_t) { ++counts[static_cast<size_t>(at)]; });
    for (int64_t k = 0; k < y.elems(); ++k) {
      const int64_t count = counts[static_cast<size_t>(k)];
      if (count > 1) to[k] = static_cast<T>(divided<W>(static_cast<W>(to[k]), count));
    }
  });
}

}  // namespace

OpDef define_scatter_elements() {
  return {
      .name = "scatter_elements",
      .doc =
          "x, where along axis 1 of three y[i, indices[i,j,k], k] becomes updates[i,j,k], or is joined with it by "
          "`reduce`; later ones win. Negative indices count from the back.",
      .inputs = {{"x", "any shape"},
                 {"indices", "i64 or i32, broadcasts to updates"},
                 {"updates", "of x's rank and type"}},
      .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                {"reduce", AttrKind::string, std::string("none"), "none, add, mul, mean, max or min"},
                {"include_self", AttrKind::boolean, true, "whether the element of x is joined too"},
                {"from_end", AttrKind::boolean, true, "negative indices count from the back; else they are refused"}},
      .infer = infer,
      .check = check_elements,
      .meaning = meaning,
      .tolerance = 1e-5,
      .samples = {"scatter_elements(f32[2,3], i64[2,2] {0, 2, 1, -1}, f32[2,2]) {axis = 1}",
                  "scatter_elements(f32[4,2], i64[3,1] {3, 0, 3}, f32[3,2]) {reduce = add}",
                  "scatter_elements(f32[4,2], i64[3,1] {3, 0, 3}, f32[3,2]) {reduce = mean, include_self = false}",
                  "scatter_elements(i64[4], i64[3] {3, 0, 3}, i64[3]) {reduce = max}",
                  "scatter_elements(f32[2,3,2], i64[2,1,2] {0, 2, 1, 0}, f32[2,1,2]) {axis = 1, reduce = mul}",
                  "scatter_elements(f32[5,3], i32[2,1] {4, -2}, f32[2,3])"}};
}

}  // namespace hetnn::ops
