// The microkernels of products by tiles (AMX), of bytes and of bf16: up to two pieces of rows times up to two packed
// panels.
//
// A step of a panel holds four bytes of elements of each of 16 columns, so that a tile of weights is 16 such steps, one
// after another as they are packed. A tile of rows is read where they lie, evenly spaced.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

inline constexpr int64_t kTileRows = 16;   // of a piece, at most
inline constexpr int64_t kTileBytes = 64;  // of a row, at most
inline constexpr int kTilePieces = 2;
inline constexpr int kTilePanels = 2;
inline constexpr int64_t kTileCols = kTilePanels * kPanel;
inline constexpr int64_t kMeanwhile = 2;

/// What one call multiplies.
struct TileBlock {
  const std::byte* pieces[kTilePieces];  // the first row of each, without a tap's offset
  int64_t step_bytes;                    // from row to row
  const int64_t* taps;                   // where a tap's elements are from there
  int64_t tap_count;
  int64_t wholes;  // of a tap's elements, runs of 64 bytes,
  int64_t rest;    // and bytes behind them, up to a whole step
  const std::byte* panel;
  int64_t panel_stride;       // to the second
  const void* base;           // what sums begin with, i32 or f32, of 32 columns
  const std::byte* prefetch;  // lines of 64 bytes that are brought near meanwhile, so many with each tile of weights
  int64_t prefetch_lines;
  // What other units do meanwhile, called kMeanwhile times for each run of elements: behind all products, it would lie
  // further ahead than a processor looks.
  void (*meanwhile)(void* what);
  void* what;
};

/// For some pieces and panels. Sums stay in tiles until they are stored, 32 a row, the second piece's from `second_row`
/// on.
struct TileFunctions {
  void (*multiply)(const TileBlock&);  // without a rest
  void (*multiply_rest)(const TileBlock&);
  void (*store)(void* sums, int64_t second_row);
};
/// Each of 1 and 2: i8, summed as i32, or bf16, summed as f32. Only where uses_amx().
const TileFunctions& integer_tiles(int pieces, int panels);
const TileFunctions& brain_tiles(int pieces, int panels);

/// While it lives, this thread's tiles hold pieces of so many rows and such a rest. Behind it they are as unused ones.
class TileState {
 public:
  TileState(int64_t rows, int64_t rest);
  ~TileState();
  TileState(const TileState&) = delete;
  TileState& operator=(const TileState&) = delete;
};

}  // namespace hetnn::kernels
