// The microkernel of products of bf16: a tile of rows times packed panels of 16 columns, all of K in registers, sums of
// f32 that are rounded to bf16 once.
//
// By instructions that multiply pairs of bf16 (AVX512_BF16), which take denormals as 0; else both of a pair are made
// f32 in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/kernels/gemm/micro.h"

namespace hetnn::kernels {

inline constexpr int kMostBrainPanels = 2;
/// Of columns without a bias.
alignas(64) inline constexpr float kNoBias[kMostBrainPanels * kPanel] = {};

struct BrainTile {
  const std::byte* const* rows = nullptr;  // rows[tap * rows_stride + r]: k elements of row r for that tap
  int64_t rows_stride = 0;
  int64_t row_offset_bytes = 0;  // of the elements from every row's pointer
  int64_t taps = 0, k = 0;
  const std::byte* panel = nullptr;  // [taps][pairs of k][16][2]; the second one's stands panel_stride bytes behind
  int64_t panel_stride = 0;
  const float* bias = kNoBias;                          // of whole panels
  float low = -std::numeric_limits<float>::infinity();  // of the result
  float high = std::numeric_limits<float>::infinity();
  uint16_t* out = nullptr;
  int64_t ld_out = 0, cols = 0;
  const std::byte* prefetch = nullptr;  // one byte is touched per pair of k, prefetch_step_bytes apart
  int64_t prefetch_step_bytes = 0;
};

/// A sum behind a tile: out = bounded(out + addend), rounded.
struct BrainSum {
  uint16_t* out;
  int64_t ld_out;
  const uint16_t* addend;
  int64_t ld_addend;
  int64_t rows, cols;
  float low, high;
};

using BrainFunction = void (*)(const BrainTile&);

struct BrainMicroTable {
  int max_rows[kMostBrainPanels + 1];                              // by panels; 0: no such tile
  BrainFunction run[kMostBrainPanels + 1][kMaxTileRows + 1] = {};  // by panels, then rows
  void (*add)(const BrainSum&) = nullptr;
};

/// Of the instruction set in use.
const BrainMicroTable& brain_micro_table();

/// Whether pairs of bf16 are multiplied in markedly less time here than f32 are: measured once.
bool brain_pairs_pay();

}  // namespace hetnn::kernels
