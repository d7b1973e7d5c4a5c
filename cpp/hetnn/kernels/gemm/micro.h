// The microkernel of linear, matmul and convolution: a tile of rows times packed panels of 16 columns, all of K in
// registers.
#pragma once

#include <cstdint>
#include <limits>

#include "hetnn/base/dtype.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTilePanels = 4;
inline constexpr int kMaxTileElems = kMaxTileRows * kMaxTilePanels * static_cast<int>(kPanel);

struct MicroTile;
/// Makes results of a tile's sums, which stand in `sums`, rows of so many vectors each.
using FinishFunction = void (*)(const MicroTile&, int rows, int vectors);

struct MicroTile {
  /// `sums`: room for kMaxTileElems elements, 64-byte aligned, of this thread's own.
  explicit MicroTile(float* room) : sums(room) {}

  float* sums;
  bool has_sums = false;  // sums under way, [rows][panels * 16], that belong to the result
  // rows[tap * rows_stride + r]: k elements of row r for that tap; of evenly spaced rows, those of the first alone
  const std::byte* const* rows = nullptr;
  int64_t rows_stride = 0;
  int64_t even_bytes = 0;  // from each row to the next, of every tap; 0 where they are not evenly spaced
  int64_t row_offset = 0;  // elements added to every row pointer (channel group)
  int64_t taps = 0;
  int64_t k = 0;
  const float* panel = nullptr;  // first panel; further ones panel_stride elements of four bytes apart
  int64_t panel_stride = 0;
  const float* bias = nullptr;    // of the first column, `cols` elements, added to the sums; or null
  const float* addend = nullptr;  // then its multiple by addend_scale is added, rows ld_addend apart; or null
  int64_t ld_addend = 0;
  float addend_scale = 1;
  float* out = nullptr;
  int64_t ld_out = 0;
  int64_t cols = 0;                          // columns written: (panels - 1) * 16 < cols <= panels * 16
  FinishFunction finish = nullptr;           // of an elementwise function, which comes before the clamp; null: of none
  const float* operand = nullptr;            // the function's second, of the first row and column
  int64_t ld_operand = 0, operand_step = 0;  // elements to that of the next row and of the next column, 0 or 1
  float c0 = 0, c1 = 0;                      // its constants
  float lo = -std::numeric_limits<float>::infinity();  // clamp at the end
  float hi = std::numeric_limits<float>::infinity();
  const void* prefetch = nullptr;  // one byte is touched per step of k, prefetch_step_bytes apart
  int64_t prefetch_step_bytes = 0;
};

using MicroFunction = void (*)(const MicroTile&);

/// The tiles of one instruction set.
struct MicroTable {
  int max_rows[kMaxTilePanels + 1];                         // by panels; 0: no such tile
  MicroFunction run[kMaxTilePanels + 1][kMaxTileRows + 1];  // by panels, then rows
  MicroFunction run_lone[kMaxTilePanels + 1];               // by panels: of all columns of a product of one row
  bool one_width;                                           // tiles of any panels sum alike

  /// How many panels, at most `most`, a tile of a product of so many rows with so many panels is to have. Of few rows
  /// many: the weights are read once either way, and more accumulators hide the latency. Else those of the tile of most
  /// accumulators.
  int panels_for(int64_t rows, int64_t panels, int most = kMaxTilePanels) const {
    int largest = 1;
    for (int wide = most; wide > 1; wide /= 2) {
      if (panels <= wide / 2) continue;
      if (rows <= max_rows[wide]) return wide;
      if (max_rows[wide] * wide > max_rows[largest] * largest) largest = wide;
    }
    return largest;
  }
};

/// Of weights of f32, or of f16 or bf16, which are made f32 in registers. A line of a panel, 64 bytes, holds one k of
/// its columns, [16], two of f16, [2][16], or two of bf16, [16][2]. Of tiles of one width a panel more than there are
/// is read.
const MicroTable& micro_table(DType weights = DType::f32);

/// Tiles of weights of f32 whose last panel has no more than kHalfPanel columns, of as many rows as most products are
/// cut into.
inline constexpr int64_t kHalfPanel = kPanel / 2;
struct HalfTiles {
  static constexpr int kLeastRows = 12, kMostPanels = 2;
  MicroFunction run[kMostPanels][kMaxTileRows - kLeastRows + 1];
  /// Null where there is no such tile.
  MicroFunction of(int64_t panels, int64_t rows) const {
    return panels <= kMostPanels && rows >= kLeastRows ? run[panels - 1][rows - kLeastRows] : nullptr;
  }
};
/// Null where the instruction set has none.
const HalfTiles* half_tiles();

/// By ops::Function; none of special ones, null where the instruction set has none.
const FinishFunction* finish_functions();

}  // namespace hetnn::kernels
