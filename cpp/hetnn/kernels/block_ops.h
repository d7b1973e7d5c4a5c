// Elementwise functions on a block of rows, vectorized: the one implementation behind epilogues, unary and binary
// kernels.
#pragma once

#include <cstdint>

#include "hetnn/ops/elementwise/function.h"

namespace hetnn::kernels {

/// out[r][c] = function(in[r][c], operand[r][c]) for a block of rows. `in` may be `out`. The operand's element of row r
/// and column c is operand[r * ld_operand + c * col_step], col_step 0 or 1. For prelu the operand holds the slopes.
struct Block {
  const float* in;
  int64_t ld_in;
  float* out;
  int64_t ld_out;
  int64_t rows;
  int64_t cols;
  const float* operand = nullptr;
  int64_t ld_operand = 0;
  int64_t col_step = 0;
  float c0 = 0;  // the function's constants
  float c1 = 0;
};

using BlockFunction = void (*)(const Block&);

/// The function for this machine.
BlockFunction block_function(ops::Function function);

}  // namespace hetnn::kernels
