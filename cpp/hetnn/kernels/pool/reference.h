// The meaning of the pools, as plain loops in double over channels-first tensors; for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/kernels/conv/geometry.h"

namespace hetnn::kernels::reference {

std::vector<double> max_pool2d(const WindowGeometry& g, const std::vector<double>& x);

/// divisor_override 0: the window's size, cut to the padded image when count_include_pad, else to the image.
std::vector<double> avg_pool2d(const WindowGeometry& g, const std::vector<double>& x, bool count_include_pad,
                               int64_t divisor_override);

/// Windows of adaptive pooling: cell i covers [floor(i * size / cells), ceil((i + 1) * size / cells)).
std::vector<double> adaptive_pool2d(const WindowGeometry& g, const std::vector<double>& x, bool max);

}  // namespace hetnn::kernels::reference
