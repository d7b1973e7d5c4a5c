// Matrix products as convolutions, linear layers and attention need them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/type.h"

namespace hetnn::ops {

/// Whether `w` is a weight kept in fewer bits than the f32 `x` it is multiplied with.
inline bool takes_weight(const Type& x, const Type& w) {
  return x.dtype == DType::f32 && !x.quant && is_narrow_float(w.dtype);
}

/// Element (row, column) is data[row * row_step + column * column_step].
template <typename T>
struct Matrix {
  const T* data;
  int64_t row_step, column_step;
};

/// store(i, j, start(i, j) + sum over c of a(i,c) b(c,j)) for i < m and j < n: sums of type S, in the order of c.
template <typename S, typename A, typename B, typename Start, typename Store>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<A> a, Matrix<B> b, Start start, Store store) {
  constexpr int64_t kColumns = 8;  // summed side by side
  std::vector<S> panel(static_cast<size_t>(k * kColumns), S(0));
  for (int64_t first = 0; first < n; first += kColumns) {
    const int64_t width = std::min(kColumns, n - first);
    for (int64_t c = 0; c < k; ++c)
      for (int64_t j = 0; j < width; ++j)
        panel[static_cast<size_t>(c * kColumns + j)] =
            static_cast<S>(b.data[c * b.row_step + (first + j) * b.column_step]);
    for (int64_t i = 0; i < m; ++i) {
      S sums[kColumns] = {};
      for (int64_t j = 0; j < width; ++j) sums[j] = start(i, first + j);
      const S* row = panel.data();
      for (int64_t c = 0; c < k; ++c, row += kColumns) {
        const auto factor = static_cast<S>(a.data[i * a.row_step + c * a.column_step]);
        for (int64_t j = 0; j < kColumns; ++j) sums[j] += factor * row[j];
      }
      for (int64_t j = 0; j < width; ++j) store(i, first + j, sums[j]);
    }
  }
}

/// to[i * n + j] = bias(i,j) + sum over c of a(i,c) b(c,j), summed as Sum<T> in the order of c and rounded once, for
/// i < m and j < n; of a T that is computed in. A bias without data is zero.
template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, Matrix<T> bias, T* to);

}  // namespace hetnn::ops
