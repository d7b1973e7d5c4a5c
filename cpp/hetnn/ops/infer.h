// Shape inference shared by operator files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/ir/graph.h"

namespace hetnn::ops {

/// The type of the first input: for elementwise operators of one input.
std::vector<ir::Type> same_as_input(const ir::Node& node);

/// Elementwise over two or more inputs: one element type, shapes broadcast. Fails with label `<op>_c1` / `<op>_c2`.
std::vector<ir::Type> broadcast_inputs(const ir::Node& node);

/// As broadcast_inputs, with a result of type bool.
std::vector<ir::Type> compare_inputs(const ir::Node& node);

/// Right-aligned broadcast of two shapes; nullopt when a dim differs and neither is 1.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// Output size of a window along one dim: floor or ceil((size + pad_begin + pad_end - dilation·(kernel-1) - 1) /
/// stride) + 1. With `ceil_mode` the last window must start inside the input or its left padding, as in torch.
Dim window_size(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end,
                bool ceil_mode);

/// The attribute `name` as integers; one value stands for all of `count`. Fails when the number is another.
std::vector<int64_t> per_axis(const ir::Node& node, std::string_view name, size_t count);

/// A window's attribute `padding` as top, left, bottom, right: given so, or as height and width, or as one for all.
std::vector<int64_t> padding_of(const ir::Node& node);
/// A pooling window's attribute `stride`; empty means the kernel's size.
std::vector<int64_t> stride_of(const ir::Node& node);

/// Shape of a reduction by attributes `axes` (empty: all) and `keepdim`.
Shape reduced_shape(const ir::Node& node);
/// The axes of a reduction, ascending, in [0, rank).
std::vector<int> reduced_axes(const ir::Node& node);

/// The attribute `name` as an integer. Fails when it depends on symbols.
int64_t fixed_integer(const ir::Node& node, std::string_view name);

/// The groups of a convolution of whatever kind, whose x and weight have been checked: rank 4, one element type
/// (`<op>_c1`, `<op>_c2`), groups positive and the weight's shape fixed (`<op>_c7`).
Dim convolution_groups(const ir::Node& node);
/// Fails with `<op>_c4` when a bias is given (input 2) that has not one element a filter.
void check_convolution_bias(const ir::Node& node, const Dim& filters);

/// What accelerators demand of convolutions and linear layers: constants for weight and bias (inputs 1 and 2).
ir::Constraint constant_weights(std::string_view label);

/// Axis in [0, rank), counting from the back when negative. Fails when out of range.
int axis_of(const ir::Node& node, const Dim& axis, int rank);

}  // namespace hetnn::ops
