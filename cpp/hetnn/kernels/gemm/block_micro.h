// The microkernels of products with weights in blocks of a few bits, a panel of 16 columns at a time.
//
// A panel's codes are [blocks][groups][16 columns][4 bytes]: a group holds 8 / bits steps of four k, step s in bits
// [s bits, (s + 1) bits) of each byte. Scales and zero points are [blocks][16].
//
// Where there are instructions that multiply bytes, x is made integers of three signed bytes, block by block: sums of
// products with codes are then exact, and what is lost of x lies below 2^-23 of the largest of its block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

inline constexpr int kDigits = 3;        // bytes of an element of x
inline constexpr int kMaxBlockRows = 4;  // of one tile
inline constexpr int kMaxBlockPanels = 4;

/// The weights of a panel, and where in all of them it begins.
struct BlockPanel {
  const std::byte* codes;
  const std::byte* scales;  // f32, or f16
  const uint8_t* zeros;     // or null: 2^(bits-1)
  bool half;                // scales are f16
  int bits;
  int64_t block;  // k of a block

  int64_t code_bytes() const { return block * bits * 2; }  // of a block of all columns
  int64_t scale_bytes() const { return kPanel * (half ? 2 : 4); }
};

/// What the integers of a block of one row stand for: unit times the integer.
struct BlockUnit {
  float unit;             // NaN where an element is not finite
  int32_t sums[kDigits];  // of the digits, times -2^(bits-1)
};

struct BlockTile {
  BlockPanel panels[kMaxBlockPanels];  // side by side, as many as the table says
  int64_t blocks;
  const int32_t* digits;   // [rows][blocks block / 4][kDigits] four bytes each, the lowest ones first
  const BlockUnit* units;  // [rows][blocks]
  const float* bias;       // of the first column; or null
  float* out;              // [rows][cols], ld_out apart
  int64_t ld_out;
  int64_t cols;  // that are written
};

/// The tiles of one instruction set.
struct BlockMicroTable {
  /// By rows, powers of two; null where there is none of so many.
  void (*run[kMaxBlockRows + 1])(const BlockTile&);
  void (*run_lone_4)(const BlockTile&);  // one row, by codes of 4 bits
  int panels, lone_panels;               // of a tile, and of run_lone_4
  int most_bits;                         // of a code that it multiplies, 0 where no instructions multiply bytes
  int64_t most_rows;                     // with more, weights that are made reals first are faster
  /// A block of x, of which `count` elements are there: its digits, and what they stand for.
  BlockUnit (*split)(const float* x, int64_t count, int64_t block, int bits, int32_t* digits);
};

const BlockMicroTable& block_micro_table();

/// Blocks [0, blocks) of a panel as reals, [blocks block][16].
void expand_blocks(const BlockPanel& panel, int64_t blocks, float* to);

}  // namespace hetnn::kernels
