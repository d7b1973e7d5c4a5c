// Sizes and parameters of a convolution or a pooling window, read from a call.
#pragma once

#include <string_view>

#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/window.h"

namespace hetnn::kernels {

/// Windows sliding over images.
struct WindowGeometry {
  int64_t batch = 1, channels = 1, height = 1, width = 1;
  int64_t out_channels = 1, out_height = 1, out_width = 1;
  ops::WindowAxis rows, columns;
  int64_t groups = 1;

  int64_t taps() const { return rows.kernel * columns.kernel; }
  int64_t out_pixels() const { return batch * out_height * out_width; }
  bool depthwise() const { return groups > 1 && groups == channels && out_channels == channels; }
};

/// Image, row and column of an output pixel.
struct OutputPixel {
  int64_t n, y, x;
};
inline OutputPixel output_pixel(const WindowGeometry& g, int64_t number) {
  const int64_t row = number / g.out_width, n = row < g.out_height ? 0 : row / g.out_height;
  return {n, row - n * g.out_height, number - row * g.out_width};
}

/// Why windows of these parameters do not slide over input 0: it is no image, or a parameter is too small.
Refusal refuse_windows(const KernelCall& call);

/// Reads stride, padding, dilation and groups; batch to out_width come from views `x` and `y`.
WindowGeometry window_geometry(const KernelCall& call, const TensorView& x, const TensorView& y, int64_t kernel_h,
                               int64_t kernel_w);

/// Of pools, whose windows the param `kernel` says, one size for both axes or one for each, and which lie side by side
/// unless a stride is given.
WindowGeometry pool_geometry(const KernelCall& call, const TensorView& x, const TensorView& y);

/// Whether x, a weight and a bias are of that type, that of i8 i32, and windows slide over x.
Refusal serves_windows(std::string_view kernel, const KernelCall& call, DType dtype = DType::f32);

/// The same of a call of conv2d.
WindowGeometry conv_geometry(const KernelCall& call);

}  // namespace hetnn::kernels
