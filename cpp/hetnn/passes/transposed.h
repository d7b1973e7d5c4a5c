// Transposed convolutions as dense ones.
#pragma once

#include <array>

#include "hetnn/passes/rule.h"

namespace hetnn::passes {

/// conv_transpose2d(x, w, b) as a convolution of stride 1. Outputs whose places agree modulo the stride share their
/// taps: each such phase has a filter of its own, and the pixels of all phases are put in order by reshapes and
/// permutations. Of reals, or of integers with weights of one scale or one a filter; null where weights or bias are not
/// constants, or have a zero point.
ir::Value* as_phases(const ir::Node& transposed, Build& build);

/// All that can be, of any stride: before a network is quantized, since integers are for dense convolutions.
void transposed_to_dense(ir::Graph& graph);

/// Pixels from channels: y[n, g·M + m, h·s0 + i, w·s1 + j] = x[n, ((g·s1 + j)·s0 + i)·M + m, h, w], one axis after the
/// other, so that no value has more than four axes.
ir::Value* channels_to_pixels(Build& build, ir::Value* x, int64_t groups, std::array<int64_t, 2> stride);

/// Rows (axis 2) or columns (axis 3) of x in [begin, end).
ir::Value* part_of_image(Build& build, ir::Value* x, int axis, const Dim& begin, const Dim& end);

}  // namespace hetnn::passes
