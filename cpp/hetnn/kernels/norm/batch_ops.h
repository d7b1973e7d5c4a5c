// Sums over the rows of a batch, and maps that follow them, vectorized: the pieces of norms over batches.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// Columns are channels, rows `ld` elements apart; short partial sums are added in double.
struct BatchOps {
  /// sums[c] += sum over rows of x - shift[c], squares[c] += that of its square.
  void (*moments)(const float* x, int64_t ld, int64_t rows, int64_t cols, const float* shift, double* sums,
                  double* squares);
  /// sums[c] += sum over rows of g, products[c] += that of g (x - shift[c]).
  void (*products)(const float* g, int64_t ld_g, const float* x, int64_t ld_x, int64_t rows, int64_t cols,
                   const float* shift, double* sums, double* products);
  /// y = g a[c] + (x - shift[c]) b[c] + d[c].
  void (*combine)(const float* g, int64_t ld_g, const float* x, int64_t ld_x, float* y, int64_t ld_y, int64_t rows,
                  int64_t cols, const float* shift, const float* a, const float* b, const float* d);
  /// The same of n elements of one channel.
  void (*line_products)(const float* g, const float* x, int64_t n, float shift, double* sum, double* product);
  void (*line_combine)(const float* g, const float* x, float* y, int64_t n, float shift, float a, float b, float d);
};

const BatchOps& batch_ops();

}  // namespace hetnn::kernels
