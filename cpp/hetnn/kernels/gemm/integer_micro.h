// The microkernel of integer products: a tile of i8 rows times packed panels of 16 columns, sums in i32; and what makes
// i8 of such sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

inline constexpr int kMaxIntegerRows = 14;
inline constexpr int kMaxIntegerPanels = 2;
inline constexpr int kMaxIntegerSums = kMaxIntegerRows * kMaxIntegerPanels * static_cast<int>(kPanel);

/// Sums to integers: saturate(round((sum + bias - turned * column_sum) * factor) + zero), within bounds.
struct IntegerFinish {
  const int32_t* sums;
  int64_t ld_sums;
  const int32_t* bias;         // of the first column, up to a whole panel; or null
  const int32_t* column_sums;  // of the weights, likewise; null: the sums began with what bias and they make
  const float* factors;        // likewise
  const int32_t* row_terms;    // added to the sums of each row; or null
  int32_t turned;              // what was added to, less what belongs to, every element of a row
  bool below_one;              // every factor is
  int32_t zero, low, high;     // of the result: what stands for 0, and its bounds
  int8_t* out;
  int64_t ld_out;
  int64_t rows, cols;
};

/// Sums to reals: (sum - turned * column_sum) * factor + bias.
struct RealFinish {
  const float* bias;  // of the first column, up to a whole panel; or null
  float* out;
};

struct IntegerTile {
  const std::byte* const* rows;  // rows[tap * rows_stride + r]: k bytes of row r for that tap
  int64_t rows_stride;
  int64_t row_offset;  // bytes added to every row pointer (channel group)
  int64_t taps;
  int64_t k;
  const std::byte* panel;  // first panel, [taps][k / 4][16][4]; further ones panel_stride bytes apart
  int64_t panel_stride;
  int32_t* sums;  // [rows][panels * 16], 64-byte aligned
  /// What makes integers of the sums in registers, which then go nowhere else: of factors below 1, without terms of
  /// rows; null: they are written to `sums`.
  const IntegerFinish* finish;
  const std::byte* prefetch;
  int64_t prefetch_step;
};

/// The tiles of one type of elements.
struct IntegerTiles {
  int max_rows[kMaxIntegerPanels + 1];                                          // by panels; 0: no such tile
  void (*run[kMaxIntegerPanels + 1][kMaxIntegerRows + 1])(const IntegerTile&);  // by panels, then rows
};

/// What one instruction set has: its tiles of bytes, and more.
struct IntegerMicroTable : IntegerTiles {
  /// Of elements of 16 bits, two in place of four bytes, whose sums wrap and are left in `sums`; none where no
  /// instruction multiplies pairs of them.
  IntegerTiles words;
  void (*finish)(const IntegerFinish&);
  /// Of the sums of a finish, whose own result it leaves.
  void (*finish_reals)(const IntegerFinish&, const RealFinish&);
  /// base[c] = what all sums of so many whole vectors of columns begin with
  void (*begin)(const IntegerFinish&, int64_t cols, int32_t* base);
  /// sums[c] = the sum of column c of a panel of so many steps
  void (*sum_columns)(const std::byte* panel, int64_t steps, int32_t* sums);
  /// Four rows of sixteen bytes, ld apart, as one step of a panel.
  void (*interleave)(const int8_t* rows, int64_t ld, std::byte* step);
  /// What stands in the sums for each element x of a row: x + turn. Instructions that multiply u8 by i8 turn its
  /// highest bit.
  int32_t turn;
  bool finishes;     // in registers
  const char* name;  // of the instructions
};

const IntegerMicroTable& integer_micro_table();

}  // namespace hetnn::kernels
