// Loops over the elements of several tensors at once: broadcasting, reductions, permutations and slices are strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hetnn/base/strides.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

using Strides = std::vector<int64_t>;

/// Row-major strides of a concrete shape, in elements.
inline Strides strides_of(std::span<const int64_t> shape) { return plain_strides(shape); }
/// Those by which a call's result lies in its first input, which is dense. Of an operator that tells them.
Strides seen_strides(const Call& call, std::span<const int64_t> shape);
/// Strides that walk a dense value of shape `from` while the index runs over `to` (0 along broadcast axes).
Strides broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to);

/// Integers from begin up to end.
struct Interval {
  int64_t begin, end;
};
/// The k in [0, count) for which first + k · step lies in [0, size), for step > 0: which taps of a window fall inside.
inline Interval inside(int64_t first, int64_t step, int64_t count, int64_t size) {
  const auto until = [&](int64_t bound) {
    return bound <= first ? 0 : std::min(count, (bound - first + step - 1) / step);
  };
  return {until(0), until(size)};
}

namespace detail {

/// Calls row(body, at, step, count) for every innermost row: where each operand's row begins, and how far apart its
/// elements lie. The strides are spent.
using Row = void (*)(void* body, const int64_t* at, const int64_t* step, int64_t count);
void nest_rows(std::span<const int64_t> shape, std::span<Strides> strides, Row row, void* body);

template <typename Body, size_t... I>
void run_row(const int64_t* at, const int64_t* step, int64_t count, Body& body, std::index_sequence<I...>) {
  if (((step[I] == 1) && ...)) {
    for (int64_t k = 0; k < count; ++k) body((at[I] + k)...);
  } else {
    for (int64_t k = 0; k < count; ++k) body((at[I] + k * step[I])...);
  }
}

}  // namespace detail

/// Calls body(offset, …) for every index of `shape` in row-major order, with the element offset of each of N operands:
/// Σ index · strides. The innermost loop is inlined, and it alone is made anew for each body.
template <size_t N, typename Body>
void nest(std::span<const int64_t> shape, std::array<Strides, N> strides, Body body) {
  detail::nest_rows(
      shape, strides,
      [](void* given, const int64_t* at, const int64_t* step, int64_t count) {
        Body& own = *static_cast<Body*>(given);
        detail::run_row(at, step, count, own, std::make_index_sequence<N>());
      },
      &body);
}

/// The elements of x in their order, whatever the shapes.
void copy(const View& x, const Result& y);

/// y[index] = x's element number first + Σ index · strides, for every index of y's shape; any element type.
void copy_strided(const View& x, int64_t first, const Strides& strides, const Result& y);

namespace detail {

/// Blocks of elements, side by side, of one or two operands and of the result.
using MapBlock = void (*)(const void* f, const void* const* in, void* out, int64_t count);
/// Calls `block` for the elements of y and those of the inputs that broadcast to them, converted to the type `in`, a
/// few hundred at once; what it writes, of the type `out`, is converted to y's.
void map_blocks(std::span<const View> inputs, const Result& y, DType in, DType out, MapBlock block, const void* f);

template <size_t kInputs, typename V, typename F>
void map_as(const Evaluation& e, const Result& y, const F& f) {
  const auto of = [](const F& each, [[maybe_unused]] V a, [[maybe_unused]] V b) {
    if constexpr (kInputs == 1) return each(a);
    if constexpr (kInputs == 2) return each(a, b);
  };
  using Out = decltype(of(f, V(), V()));
  map_blocks(
      e.inputs.first(kInputs), y, DTypeOf<V>::value, DTypeOf<Out>::value,
      [](const void* each, const void* const* in, void* out, int64_t count) {
        const auto *a = static_cast<const V*>(in[0]), *b = static_cast<const V*>(in[kInputs - 1]);
        const F own = *static_cast<const F*>(each);
        for (int64_t k = 0; k < count; ++k) static_cast<Out*>(out)[k] = decltype(of)()(own, a[k], b[k]);
      },
      &f);
}

}  // namespace detail

/// y[i] = f(x[i]) or f(a[i], b[i]) with broadcasting, f generic over the wide types; what it returns is converted to
/// y's element type.
template <size_t kInputs, typename F>
void map_elements(const Evaluation& e, F f) {
  const Result y = e.output();
  visit_wide(wide_dtype(e.input(0).dtype), [&](auto zero) { detail::map_as<kInputs, decltype(zero)>(e, y, f); });
}
/// The same, f generic over the wide reals alone.
template <size_t kInputs, typename F>
void map_reals(const Evaluation& e, F f) {
  const Result y = e.output();
  visit_wide_reals(wide_dtype(e.input(0).dtype), [&](auto zero) { detail::map_as<kInputs, decltype(zero)>(e, y, f); });
}
/// The same, f generic over the wide integers and bool alone.
template <size_t kInputs, typename F>
void map_integers(const Evaluation& e, F f) {
  const Result y = e.output();
  visit_wide_integers(wide_dtype(e.input(0).dtype),
                      [&](auto zero) { detail::map_as<kInputs, decltype(zero)>(e, y, f); });
}

}  // namespace hetnn::ops
