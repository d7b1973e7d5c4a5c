// One pixel after another of a depthwise convolution of integers: four taps at once, vectors over channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetnn::kernels {

/// Channels of one block of packed weights, [taps / 4][4][4][4][4]: four taps of four channels of each of four
/// sixteens, four times; sums, factors and biases likewise, but for the taps. Instructions that work in lanes of 16
/// bytes so read whole vectors of any width.
inline constexpr int64_t kDepthwiseBlock = 64;
/// Where channel c of a block stands among those of its sums.
constexpr int64_t place_in_block(int64_t c) { return c % 16 / 4 * 16 + c / 16 * 4 + c % 4; }

struct IntegerDepthwise {
  const std::byte* const* rows;  // rows[tap * rows_stride + pixel]; four taps for each quad
  int64_t rows_stride;
  int64_t quads, pixels, channels;
  // Sliding: of each row of the window its first pixel, and how far one is from the next: both `zeros` and 0 outside.
  const std::byte* lines[3];
  int64_t line_steps[3];
  const std::byte* zeros;
  int64_t before, width;  // pixels of zeros that a line begins with, and of its own
  const std::byte* weights;
  const int32_t* bias;  // or null
  const int32_t* sums;  // of the weights
  const float* factors;
  int32_t x_zero, zero, low, high;
  int8_t* out;
  int64_t ld_out;
  int32_t*
      raw;  // where not null, the sums with all that belongs to them go here, blocks of each pixel, and not to `out`
};

using IntegerDepthwiseFunction = void (*)(const IntegerDepthwise&);
struct IntegerDepthwiseTable {
  IntegerDepthwiseFunction any;
  /// Of windows of 3 x 3 as many pixels apart, whose quads are the pixels of a column and one more, times 0: columns
  /// that two of them share are read once. Where not null.
  IntegerDepthwiseFunction sliding[3];
};
const IntegerDepthwiseTable& integer_depthwise();

}  // namespace hetnn::kernels
