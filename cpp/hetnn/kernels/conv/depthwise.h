// Depthwise convolution over a few pixels and all channels, vectorized over channels.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// `pixels` neighbouring outputs of one row. Element strides; the window is cut to rows [ky_begin, ky_end) and columns
/// [kx_begin, kx_end) where it leaves the image (all pixels of a tile alike).
struct DepthwiseTile {
  const float* in;       // window origin of the first pixel (may lie outside the image where the window is cut)
  int64_t ky_stride;     // from one window row to the next
  int64_t kx_stride;     // from one window column to the next
  int64_t pixel_stride;  // from one output's window to the next one's
  int64_t ky_begin, ky_end, kx_begin, kx_end;
  int64_t kernel_w;
  const float* panels;   // [ceil(channels / 16)][kernel_h * kernel_w][16]
  int64_t panel_stride;  // kernel_h * kernel_w * 16
  const float* bias;     // channels, or null
  float* out;
  int64_t ld_out;
  int64_t channels;
  float lo, hi;
};

inline constexpr int kDepthwisePixels = 4;

struct DepthwiseTable {
  void (*one)(const DepthwiseTile&);
  void (*four)(const DepthwiseTile&);           // any window
  void (*four_by_3)(const DepthwiseTile&);      // kernel_w 3 uncut, pixel_stride == kx_stride
  void (*four_by_5)(const DepthwiseTile&);      // kernel_w 5 uncut, pixel_stride == kx_stride
  void (*four_by_3_any)(const DepthwiseTile&);  // kernel_w 3 uncut, any stride
};

const DepthwiseTable& depthwise_table();

}  // namespace hetnn::kernels
