// The microkernel of linear, matmul and convolution: a tile of rows times packed panels of 16 columns, all of K in
// registers.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

inline constexpr int64_t kPanel = 16;  // columns of one packed panel [taps][k][16]

struct MicroTile {
  const float* const* rows;  // rows[tap * rows_stride + r]: k elements of row r for that tap
  int64_t rows_stride;
  int64_t row_offset;  // elements added to every row pointer (channel group)
  int64_t taps;
  int64_t k;
  const float* panel;  // first panel; further ones panel_stride elements apart
  int64_t panel_stride;
  const float* bias;  // of the first column, `cols` elements; or null
  const float* init;  // added to the accumulators' start, rows ld_init apart; or null
  int64_t ld_init;
  float* out;
  int64_t ld_out;
  int64_t cols;           // columns written: (panels - 1) * 16 < cols <= panels * 16
  float lo, hi;           // clamp at the end
  const float* prefetch;  // one cache line is touched per step of k, prefetch_step elements apart
  int64_t prefetch_step;
};

using MicroFunction = void (*)(const MicroTile&);

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTilePanels = 4;

/// The tiles of one instruction set.
struct MicroTable {
  int max_rows[kMaxTilePanels + 1];                         // by panels; 0: no such tile
  MicroFunction run[kMaxTilePanels + 1][kMaxTileRows + 1];  // by panels, then rows
};

const MicroTable& micro_table();

}  // namespace hetnn::kernels
