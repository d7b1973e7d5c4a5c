// What reductions share: any axes to one, each operator with its own way of joining two values.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

/// What tells one reduction from another.
struct Reduction {
  std::string_view name;
  std::string_view doc;  // of the result, without the axes
  std::vector<TorchName> torch;
  std::vector<OnnxName> onnx;
  void (*meaning)(const Evaluation&);
  double tolerance;
  std::vector<std::string_view> samples;
  bool of_none = false;  // whether an attribute of that name gives no elements a result
};

/// Whether no elements of that type may have an extreme: integers that are computed in wider ones would get their end.
bool has_extreme_of_none(DType dtype);

/// The type of the input over fewer axes.
std::vector<Type> infer_reduction(const Call& call);

/// For every element k of the result write(k, step(... step(step(initial, x0), x1) ...)) over the elements of T that
/// fall to it, in their order.
template <typename T, typename A, typename Step, typename Write>
void fold(const Evaluation& e, A initial, Step step, Write write) {
  const View& x = e.input(0);
  std::vector<int64_t> kept(x.shape.begin(), x.shape.end());
  for (int axis : reduced_axes(e.call)) {
    if (x.rank() > 0) kept[static_cast<size_t>(axis)] = 1;
  }
  const int64_t count = View(x.dtype, kept, nullptr).elems();
  const auto folded = std::make_unique<A[]>(static_cast<size_t>(count));
  std::fill_n(folded.get(), count, initial);
  const T* from = x.values<T>().data();
  A* to = folded.get();
  nest<2>(x.shape, {strides_of(x.shape), broadcast_strides(kept, x.shape)},
          [=](int64_t at, int64_t into) { to[into] = step(to[into], from[at]); });
  for (int64_t k = 0; k < count; ++k) write(k, folded[static_cast<size_t>(k)]);
}

/// Sums or products: step over Sum<T>, from `initial`.
template <typename Step>
void reduce_sums(const Evaluation& e, int initial, Step step) {
  const Result y = e.output();
  visit_wide(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    fold<T>(
        e, static_cast<S>(initial), [step](S so_far, T x) { return step(so_far, static_cast<S>(x)); },
        [to = y.values<T>()](int64_t k, S sum) { to[k] = static_cast<T>(sum); });
  });
}

/// Fails with `<op>_c1` where elements of the result have no element of the input to be chosen from.
void check_not_empty(const Evaluation& e, const Result& y);

/// The element that is before all others: NaN, then as before(a, b) says.
template <typename Before>
void reduce_extremes(const Evaluation& e, Before before) {
  const Result y = e.output();
  check_not_empty(e, y);
  visit_wide(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    const T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T low = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    fold<T>(
        e, before(high, low) ? low : high,
        [before](T so_far, T x) { return so_far != so_far || before(so_far, x) ? so_far : x; },
        [to = y.values<T>()](int64_t k, T extreme) { to[k] = extreme; });
  });
}

/// Whether all or any elements are not 0.
template <typename Join>
void reduce_booleans(const Evaluation& e, bool initial, Join join) {
  bool* to = e.output().values<bool>();
  visit_wide(e.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    fold<T>(
        e, initial, [join](bool so_far, T x) { return join(so_far, x != T(0)); },
        [to](int64_t k, bool truth) { to[k] = truth; });
  });
}

/// The operator: attributes `axes` and `keepdim`, one flop an element.
OpDef reduction(const Reduction& of, std::vector<Type> (*infer)(const Call&) = infer_reduction);

}  // namespace hetnn::ops
