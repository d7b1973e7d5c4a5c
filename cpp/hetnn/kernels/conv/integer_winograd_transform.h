// The transforms of Winograd F(4x4, 3x3) over integers, vectorized over channels.
#pragma once

#include <cstdint>

#include "hetnn/kernels/conv/winograd_transform.h"

namespace hetnn::kernels {

/// Elements of 16 bits that are written and read at once.
inline constexpr int64_t kWordsAtOnce = 32;

/// to[(i * 6 + j) * point_stride + c] = (B^T d B)[i][j] for every channel c, up to a whole number of kWordsAtOnce, with
/// d[i][j] = pixels[i * 6 + j][c], zeros behind the last channel.
struct IntegerWinogradInput {
  const int8_t* const* pixels;
  int16_t* to;
  int64_t point_stride;
  int64_t channels;
};

/// to[i * row_stride + j * pixel_stride + c] = (A^T m A)[i][j] for `panels` times 16 channels c, with the scaled
/// products m[i][j] = from[(i * 6 + j) * point_stride + c].
struct IntegerWinogradOutput {
  const int32_t* from;
  int64_t point_stride;
  int32_t* to;
  int64_t row_stride, pixel_stride;
  int64_t channels;
};

/// Null where the instruction set has no products of such pairs.
struct IntegerWinogradTable {
  void (*input)(const IntegerWinogradInput&);
  void (*output)(const IntegerWinogradOutput&);
};

const IntegerWinogradTable& integer_winograd_table();

}  // namespace hetnn::kernels
