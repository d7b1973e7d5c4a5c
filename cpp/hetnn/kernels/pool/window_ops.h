// Reductions over windows of pixels, vectorized over channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetnn::kernels {

/// A window of rows x cols pixels starting at `in`, one output pixel of `channels` elements; then, as many as `count`
/// says, alike.
struct PoolWindow {
  const std::byte* in;
  int64_t row_stride;  // elements between window rows
  int64_t col_stride;  // elements between window columns
  int64_t rows, cols;  // after cutting at the borders; at least one each
  std::byte* out;
  int64_t channels;
  float scale;  // sums only: applied at the end
  int64_t count = 1;
  int64_t in_step = 0, out_step = 0;  // elements to the next window and its output pixel
  int16_t infinity = 0;               // 16-bit floats only: its bits
};

/// A window of the input, and what its result's gradient adds to the element that is its largest: the first of equals;
/// NaN wins, and the last of them.
struct PoolRoute {
  const float* in;
  int64_t row_stride, col_stride;  // of `in`
  const float* gradient;
  float* out;
  int64_t out_row_stride, out_col_stride;
  int64_t rows, cols;  // after cutting at the borders; at least one each
  int64_t channels;
  bool stores;  // to all of the window, instead of adding
};

using PoolFunction = void (*)(const PoolWindow&);

struct PoolTable {
  PoolFunction max, max_bytes, max_halves;  // of f32, i8, and f16 or bf16
  PoolFunction sum;
  void (*route)(const PoolRoute&);
};

const PoolTable& pool_table();

}  // namespace hetnn::kernels
