// Sizes and parameters of a convolution or a pooling window, read from a call and checked once.
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

/// Reads stride, padding, dilation and groups; batch to out_width come from views `x` and `y`. Throws InvalidModel for
/// a parameter of the wrong length or sign, Unsupported for ranks other than 4. `op` names the kernel in
/// messages.
WindowGeometry window_geometry(std::string_view op, const KernelCall& call, const TensorView& x, const TensorView& y,
                               int64_t kernel_h, int64_t kernel_w);

/// The same of a call of conv2d on operands of that type; the bias of i8 is i32. Throws for operands that do not fit
/// one another.
WindowGeometry conv_geometry(const KernelCall& call, DType dtype = DType::f32);

}  // namespace hetnn::kernels
