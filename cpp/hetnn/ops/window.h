// How windows lie along the axes of an image, said once: for the meanings and kernels of convolutions, pools and folds,
// for the rules that rewrite them and the devices' generators.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

/// Windows along one axis: `kernel` taps, `dilation` elements apart. Windows begin `stride` elements apart, the first
/// one `before` elements ahead of the axis, behind which lie `after` elements of padding.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;

  /// Elements from the first tap to the last, both counted.
  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  /// How many windows lie over an axis of `size`.
  Dim count(const Dim& size, bool ceil_mode = false) const {
    return window_size(size, kernel, stride, dilation, before, after, ceil_mode);
  }
  /// The size of the axis that so many windows make when they add up, with `extra` elements more behind it.
  Dim spread(const Dim& count, int64_t extra = 0) const {
    return (count - 1) * stride + (reach() + extra - before - after);
  }
  /// The element at which window `at` begins; below 0 in the padding.
  int64_t begin(int64_t at) const { return at * stride - before; }
  /// The taps of window `at` that meet elements [0, size).
  Interval taps(int64_t at, int64_t size) const { return inside(begin(at), dilation, kernel, size); }
  /// The windows of [0, count) whose tap number `tap` meets elements [0, size).
  Interval windows(int64_t tap, int64_t count, int64_t size) const {
    return inside(tap * dilation - before, stride, count, size);
  }
  /// The elements of [0, size) from the first to the last that `count` windows from `at` on meet.
  Interval elements(int64_t at, int64_t count, int64_t size) const {
    const int64_t first = std::clamp<int64_t>(begin(at), 0, size);
    return {first, std::clamp<int64_t>(begin(at + count - 1) + reach(), first, size)};
  }
  /// The most elements of [0, size) that `count` windows side by side meet.
  int64_t most_elements(int64_t count, int64_t size) const { return std::min(size, (count - 1) * stride + reach()); }
  bool is_padded() const { return before != 0 || after != 0; }
};

/// One for each axis behind batch and channels: height and width of an image.
using Window = std::vector<WindowAxis>;

/// The window of a call over so many axes, by its attributes `stride` (none: the kernel), `dilation` and `padding` (of
/// both sides of each axis; or before each, then behind each). The kernel's size is the attribute `kernel` or `block`,
/// else that of the weight, input 1.
Window window_of(const Call& call, size_t axes = 2);

/// Taps of one window in all.
int64_t taps_of(const Window& window);
/// Whether kernel, stride and dilation are.
bool is_positive(const Window& window);

/// As attributes of calls: the strides; what lies before each axis, then behind each.
std::vector<Dim> stride_attr(const Window& window);
std::vector<Dim> padding_attr(const Window& window);

/// {N, channels, windows along each axis} for x [N,C,sizes...]. Fails with `label` where some axis has room for none.
Shape windows_over(const Call& call, const Window& window, const Dim& channels, bool ceil_mode, std::string_view label);

}  // namespace hetnn::ops
