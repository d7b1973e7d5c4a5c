// Multiplies rows by panels that were made reals.
#include "hetnn/kernels/gemm/expanded.h"

namespace hetnn::kernels {

void ExpandedProduct::multiply(const ExpandedRun& run, Share rows, int64_t panel, int wide, Share k,
                               const float* reals) const {
  alignas(64) float sums[kMaxTileElems];
  const std::byte* table[kMaxTileRows];
  const int64_t col = panel * kPanel;
  MicroTile tile(sums);
  tile.rows = table;
  tile.rows_stride = kMaxTileRows;
  tile.even_bytes = k_ * 4;
  tile.taps = 1;
  tile.k = k.end - k.begin;
  tile.prefetch = tile.panel = reals;
  tile.panel_stride = chunk_ * kPanel;
  tile.ld_addend = tile.ld_out = cols_;
  tile.cols = std::min(cols_ - col, wide * kPanel);
  if (run.bias != nullptr && k.end == k_) tile.bias = run.bias + col;
  // Tiles of equal size, so that the last one is not a sliver.
  const int64_t most = micro_->max_rows[wide];
  int64_t tiles = (rows.end - rows.begin + most - 1) / most;
  for (int64_t row = rows.begin; row < rows.end; --tiles) {
    const int64_t count = (rows.end - row + tiles - 1) / tiles;
    for (int64_t r = 0; r < count; ++r) table[r] = reinterpret_cast<const std::byte*>(run.x + (row + r) * k_ + k.begin);
    tile.out = run.out + row * cols_ + col;
    if (k.begin > 0) tile.addend = tile.out;
    micro_->run[wide][count](tile);
    row += count;
  }
}

}  // namespace hetnn::kernels
