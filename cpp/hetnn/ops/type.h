// Types of values: element type, shape, and what integers stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/ops/attr.h"

namespace hetnn::ops {

/// What the integers of a quantized tensor stand for: real = scale · (q - zero_point). One scale for the whole tensor,
/// or one for each index of axis 0 (weights; zero point 0).
struct Quant {
  std::vector<double> scales;
  int32_t zero_point = 0;
  bool operator==(const Quant&) const = default;
};

/// Type of a value: element type and shape, channels first as in torch and ONNX; for integers that stand for reals,
/// also how (i8 for tensors and weights, i32 for biases).
struct Type {
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Quant> quant = std::nullopt;

  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const Type&) const = default;
};
/// `f32[1,3,h,w]`, `i8{0.05:-3}[1,8,h,w]`, `i8{0.1,0.2}[2,8]`.
std::string to_string(const Type& type);

/// What is wrong with how a type says what its integers stand for: the broken constraint's label, what there must be
/// and what was found.
struct QuantFault {
  std::string_view label;
  std::string text;
};
/// None for a sound type. Integers are i8 or i32, scales finite and positive.
std::optional<QuantFault> quant_fault(const Type& type);

/// Why no value has the shape, of the sizes that are known: one below 0, or so many elements that bytes and strides of
/// some type no longer fit into 63 bits, and no memory holds them. None for a sound one.
std::optional<std::string> shape_fault(const Shape& shape);

/// Whether values of this type stand for reals.
inline bool is_real(const Type& type) { return is_float(type.dtype) || type.quant.has_value(); }

/// Whether a value is a feature map, [N,C,H,W]: one vector of channels a pixel, which may lie channels last.
inline bool is_feature_map(const Type& type) { return type.rank() == 4; }

/// Attributes that any call may have whose result is of an integer type: how that result is quantized.
inline constexpr std::string_view kQuantScale = "q_scale";  // reals: one, or one for each index of axis 0
inline constexpr std::string_view kQuantZero = "q_zero";    // integer, 0 unless given
/// The two for `quant`.
Attrs quant_attrs(const Quant& quant);

}  // namespace hetnn::ops
