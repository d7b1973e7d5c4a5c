// Types of values: element type, shape, and what integers stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/ops/attr.h"

namespace hetnn::ops {

/// What the integers of a quantized tensor stand for: real = scale · (q - zero point). One scale and zero point for the
/// whole tensor, or one for each index of an axis (weights).
struct Quant {
  std::vector<double> scales;
  std::vector<int32_t> zero_points = {0};  // one for all scales, or one for each
  int axis = 0;                            // of several scales

  bool per_tensor() const { return scales.size() == 1; }
  double scale(size_t index = 0) const { return scales[per_tensor() ? 0 : index]; }
  int32_t zero_point(size_t index = 0) const { return zero_points[zero_points.size() == 1 ? 0 : index]; }
  bool has_zero_point() const;  // one that is not 0
  bool operator==(const Quant&) const = default;
};

/// Type of a value: element type and shape, channels first as in torch and ONNX; for integers that stand for reals,
/// also how.
struct Type {
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Quant> quant = std::nullopt;

  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const Type&) const = default;
};
/// `f32[1,3,h,w]`, `i8{0.05:-3}[1,8,h,w]`, `i8{0.1,0.2}[2,8]`, with zero points along axis 1 `u8{0.1,0.2:3,4@1}[8,2]`.
std::string to_string(const Type& type);

/// What is wrong with how a type says what its integers stand for: the broken constraint's label, what there must be
/// and what was found.
struct QuantFault {
  std::string_view label;
  std::string text;
};
/// Whether integers of the type may stand for reals: i8, u8 and i16, the sums i32 and i64, and the stored i4, u4, i2,
/// u2.
bool may_be_quantized(DType dtype);
/// None for a sound type: integers that may stand for reals, scales finite and positive.
std::optional<QuantFault> quant_fault(const Type& type);

/// Why no value has the shape, of the sizes that are known: one below 0, or so many elements that bytes and strides of
/// some type no longer fit into 63 bits, and no memory holds them. None for a sound one.
std::optional<std::string> shape_fault(const Shape& shape);

/// Whether values of this type stand for reals.
inline bool is_real(const Type& type) { return is_float(type.dtype) || type.quant.has_value(); }

/// Whether a value is a feature map, [N,C,H,W]: one vector of channels a pixel, which may lie channels last.
inline bool is_feature_map(const Type& type) { return type.rank() == 4; }

/// Attributes that any call may have whose result is of an integer type: how that result is quantized.
inline constexpr std::string_view kQuantScale = "q_scale";  // reals: one, or one for each index of an axis
inline constexpr std::string_view kQuantZero = "q_zero";    // integers, 0 unless given: one, or one for each scale
inline constexpr std::string_view kQuantAxis = "q_axis";    // integer: that of several scales, 0 unless given
inline constexpr std::string_view kQuantRounding = "q_rounding";  // of kRoundings: how integers become the result's
inline constexpr std::string_view kQuantAttrs[] = {kQuantScale, kQuantZero, kQuantAxis, kQuantRounding};
/// Scale, zero point and axis of `quant`.
Attrs quant_attrs(const Quant& quant);
/// Attributes of a `quantize` to a quantized type.
Attrs quantize_attrs(const Type& type);

}  // namespace hetnn::ops
