// Constants of rules: tensors read and written as doubles, and constants that vary along one axis only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/tensor.h"

namespace hetnn::passes {

/// Whether rules compute with constants of this type: any real one.
bool has_arithmetic(DType dtype);

/// The values of a tensor of any type.
std::vector<double> to_doubles(const Tensor& tensor);
/// The reverse, rounded to a real type (through f32 to narrower ones); Unsupported for other types.
Tensor from_doubles(DType dtype, std::vector<int64_t> shape, std::span<const double> values);

/// The tensor of a real type with its values times `scale`, one for each index of axis 0, computed as by the two above.
Tensor scaled(const Tensor& tensor, std::span<const double> scale);

/// The rows of the tensor, then those of `scaled`.
Tensor with_scaled(const Tensor& tensor, std::span<const double> scale);

/// Of so many channels rules make constants with a number for each, where one for all would do.
inline constexpr int64_t kMostChannels = int64_t{1} << 20;

/// A constant operand of an elementwise node seen along one axis of the other operand.
struct AxisConstant {
  int axis = 0;
  std::vector<double> values;  // one per index of that axis
};

/// `constant` broadcast against a value of shape `x`, when the result has the shape of `x` and the constant varies
/// along one axis at most: that axis and its values; for a single value, axis `preferred_axis` (or the last, where
/// there is none) and as many copies as that axis is long. nullopt otherwise, or when the axis is not of fixed size.
std::optional<AxisConstant> along_one_axis(const Tensor& constant, const Shape& x, int preferred_axis = 1);

/// The single value of a constant, whatever its shape.
std::optional<double> single_value(const Tensor& constant);

/// All values equal `value`, and for 0 also its sign.
bool all_equal(const Tensor& constant, double value);

}  // namespace hetnn::passes
