// Loops over the elements of several tensors at once: broadcasting, reductions, permutations and slices are strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

using Strides = std::vector<int64_t>;

/// Row-major strides of a concrete shape, in elements.
Strides strides_of(std::span<const int64_t> shape);
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

/// y[i] = f(x[i]), f generic over the wide type of the elements; y's element type is x's.
template <typename F>
void map_unary(const Evaluation& e, F f) {
  const View& x = e.input(0);
  const Result y = e.output();
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = y.values<T>();
    const int64_t count = x.elems();
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<T>(f(static_cast<Wide<T>>(from[k])));
  });
}

/// y[i] = f(a[i], b[i]) with broadcasting, in the wide type of a's and b's elements; y is of the inferred type (bool
/// for comparisons).
template <typename F>
void map_binary(const Evaluation& e, F f) {
  const View &a = e.input(0), &b = e.input(1);
  const Result y = e.output();
  const std::array<Strides, 3> strides = {strides_of(y.shape), broadcast_strides(a.shape, y.shape),
                                          broadcast_strides(b.shape, y.shape)};
  visit_dtype(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *va = a.values<T>().data(), *vb = b.values<T>().data();
    const auto into = [&](auto* to) {
      using To = std::remove_pointer_t<decltype(to)>;
      nest<3>(y.shape, strides, [=](int64_t at, int64_t left, int64_t right) {
        to[at] = static_cast<To>(f(static_cast<Wide<T>>(va[left]), static_cast<Wide<T>>(vb[right])));
      });
    };
    if (y.dtype == a.dtype) {  // NOLINT(bugprone-branch-clone): the branches differ unless T is bool
      into(y.values<T>());
    } else {
      into(y.values<bool>());
    }
  });
}

}  // namespace hetnn::ops
