// Tiles of convolutions of few products a channel, vectorized over channels.
#pragma once

#include <cstdint>

#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// Neighbouring outputs of one row, some channels of them. Element strides; the window is cut to rows [ky_begin,
/// ky_end) and columns [kx_begin, kx_end) where it leaves the image: all pixels of a tile alike, or the columns of all
/// of its windows together.
struct SlidingTile {
  const float* in;       // window origin of the first pixel (may lie outside the image where the window is cut)
  int64_t ky_stride;     // from one window row to the next
  int64_t kx_stride;     // from one window column to the next
  int64_t pixel_stride;  // from one output's window to the next one's
  int64_t ky_begin, ky_end, kx_begin, kx_end;
  int64_t kernel_h, kernel_w;
  const float* panels;   // [ceil(channels / 16)][kernel_h * kernel_w][inputs of a group][16]
  int64_t panel_stride;  // elements of one panel
  const float* bias;     // channels, or null
  float* out;
  int64_t ld_out;
  int64_t out_row;                      // from an output row to the next, of tiles of two
  int64_t channels;                     // written
  int64_t input_channels;               // that may be read from `in` on
  int64_t group_inputs, group_outputs;  // 16 are a multiple of each
  const float* slopes;  // what is not above zero is multiplied by these, slope_step 0 or 1 elements apart; or null
  int64_t slope_step;
  float lo, hi;
};

/// Tiles of rows of groups have so many pixels or one more.
constexpr int64_t kLeastRow = 7;

using SlidingFunction = void (*)(const SlidingTile&);

/// What computes tiles of one window, for one instruction set.
struct SlidingFunctions {
  SlidingFunction one;    // a pixel, its window cut
  SlidingFunction uncut;  // `pixels` of them, windows inside the image from left to right
  int64_t pixels;
  /// The same of two output rows, whose windows are a window row apart: what both read is read once. The window's rows
  /// are counted from the upper one's and end with the lower one's. Or null.
  SlidingFunction pair = nullptr;
  /// How many columns the windows of such tiles have together, where they may leave the image; else 0.
  int64_t columns = 0;
};

/// Of one input channel an output channel and rows of `width` outputs; windows of neighbouring pixels are `step` of
/// their columns apart, 0: of no whole number.
SlidingFunctions depthwise_functions(int64_t kernel_w, int64_t step, int64_t width);
/// Of groups of four or eight outputs and no more inputs. `step`: windows of neighbouring pixels are one or two of
/// their three columns apart, and no more than one column of a row's windows lies outside the image on either side;
/// else 0.
SlidingFunctions grouped_functions(int64_t outputs, int64_t step, int64_t width);

}  // namespace hetnn::kernels
