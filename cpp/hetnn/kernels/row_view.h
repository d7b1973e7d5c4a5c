// A tensor seen as rows of channels: the shape in which GEMM, convolution, pooling and their epilogues write their
// results.
#pragma once

#include <optional>
#include <string>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// rows x cols, consecutive rows `pitch` elements apart. For nhwc: rows are the pixels of all images, cols the
/// channels. For plain: cols is the last axis. `rows_per_batch` is how many rows share the first axis' index.
struct RowView {
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t pitch = 1;
  int64_t rows_per_batch = 1;
};

RowView row_view(const TensorView& view);

/// The view as nhwc if its bytes can be read so without moving: nhwc itself, or plain of rank >= 3 with one channel or
/// one pixel.
std::optional<TensorView> as_nhwc(const TensorView& view);

/// "[1,3,224,224] nhwc", for messages.
std::string view_text(const TensorView& view);

/// An axis of a tensor of that rank counted from the front, of one counted from either end; `op` names the kernel.
size_t checked_axis(std::string_view op, int64_t axis, int rank);

}  // namespace hetnn::kernels
