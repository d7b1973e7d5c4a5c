// Elementwise steps on a block of rows, vectorized: the one implementation behind epilogues, unary and binary kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hetnn::kernels {

// clang-format off
enum class BlockOp : uint8_t {
  identity, relu, clip, leaky_relu, elu, silu, hardswish, hardsigmoid, sigmoid, tanh, gelu, gelu_tanh, mish, softplus, abs, neg,
  square, sqrt, rsqrt, reciprocal, exp, log, sin, cos, erf, floor, ceil, round, sign, scale, shift,
  add, sub, mul, div, max, min, pow, remainder, floor_div, prelu,
};
// clang-format on
inline constexpr int kBlockOps = static_cast<int>(BlockOp::prelu) + 1;

constexpr bool is_binary(BlockOp op) { return op >= BlockOp::add; }

/// relu6 is clip(0, 6) and therefore not among the names.
std::optional<BlockOp> block_op_from_name(std::string_view name);

/// How many constants the op takes (clip 2: lo hi; leaky_relu, elu, scale, shift 1; others 0).
int block_op_values(BlockOp op);

/// out[r][c] = op(in[r][c], operand[r][c]) for a block of rows. `in` may be `out`. The operand's element of row r and
/// column c is operand[r * ld_operand + c * col_step], col_step 0 or 1. For prelu the operand holds the slopes.
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
  float v0 = 0;
  float v1 = 0;
};

using BlockFunction = void (*)(const Block&);

/// The function for this machine. sin, cos, log, pow, remainder, floor_div and softplus go through the C library.
BlockFunction block_function(BlockOp op);

}  // namespace hetnn::kernels
