// Shape inference shared by operator files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

/// Whether operands may be computed with together: of one element type, or both quantized.
inline bool agree(const Type& a, const Type& b) { return a.dtype == b.dtype || (a.quant && b.quant); }

/// The type of the first input: for elementwise operators of one input.
std::vector<Type> same_as_input(const Call& call);

/// Elementwise over two or more inputs: one element type, shapes broadcast. Fails with label `<op>_c1` / `<op>_c2`.
std::vector<Type> broadcast_inputs(const Call& call);

/// As broadcast_inputs, with a result of type bool.
std::vector<Type> compare_inputs(const Call& call);

/// Right-aligned broadcast of two shapes; nullopt when a dim differs and neither is 1.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// Output size of a window along one dim: floor or ceil((size + pad_begin + pad_end - dilation·(kernel-1) - 1) /
/// stride) + 1. With `ceil_mode` the last window must start inside the input or its left padding, as in torch.
Dim window_size(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end,
                bool ceil_mode);

/// The attribute `name` as integers; one value stands for all of `count`. Fails when the number is another.
std::vector<int64_t> per_axis(const Call& call, std::string_view name, size_t count);

/// Shape of a reduction by attributes `axes` (empty: all) and `keepdim`.
Shape reduced_shape(const Call& call);
/// The axes of a reduction, ascending, in [0, rank).
std::vector<int> reduced_axes(const Call& call);

/// The attribute `name` as an integer. Fails when it depends on symbols.
int64_t fixed_integer(const Call& call, std::string_view name);

/// Fails with `label` when an input in [first, last) that is there is not of this shape and of the first input's
/// element type; of quantized calls the types are free.
void check_parameters(const Call& call, size_t first, size_t last, const Shape& shape, std::string_view label);

/// The groups of a convolution of whatever kind, whose x and weight have been checked: rank 4, one element type
/// (`<op>_c1`, `<op>_c2`), groups positive and the weight's shape fixed (`<op>_c7`).
Dim convolution_groups(const Call& call);
/// Fails with `<op>_c4` when a bias is given (input 2) that has not one element a filter.
void check_convolution_bias(const Call& call, const Dim& filters);

/// What accelerators demand of convolutions and linear layers: constants for weight and bias (inputs 1 and 2).
Constraint constant_weights(std::string_view label);

/// Axis in [0, rank), counting from the back when negative. Fails when out of range.
int axis_of(const Call& call, const Dim& axis, int rank);

}  // namespace hetnn::ops
