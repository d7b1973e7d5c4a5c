// Types as text, and quantization as attributes.
#include "hetnn/ops/type.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetnn/base/error.h"

namespace hetnn::ops {
namespace {

std::string number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

Attrs quant_attrs(const Quant& quant) {
  Attrs out{{std::string(kQuantScale), quant.scales}};
  if (quant.zero_point != 0) out.emplace(kQuantZero, Dim(quant.zero_point));
  return out;
}

std::optional<QuantFault> quant_fault(const Type& type) {
  if (!type.quant) return {};
  const auto& [scales, zero_point] = *type.quant;
  const bool positive =
      !scales.empty() && std::ranges::all_of(scales, [](double s) { return s > 0 && std::isfinite(s); });
  if (!positive || (type.dtype != DType::i8 && type.dtype != DType::i32)) {
    return {{"quant_c1", text("must be i8 or i32 with finite positive scales; got ", dtype_name(type.dtype), " and ",
                              scales.size(), " scales", scales.empty() ? std::string() : text(" from ", scales[0]))}};
  }
  if (scales.size() > 1 &&
      (type.shape.empty() || type.shape[0] != Dim(static_cast<int64_t>(scales.size())) || zero_point != 0)) {
    return {
        {"quant_c2", text("must have one scale, or one for each index of axis 0 and zero point 0; got ", scales.size(),
                          " scales and zero point ", zero_point, " for ", hetnn::to_string(type.shape))}};
  }
  if (type.dtype == DType::i8 && (zero_point < -128 || zero_point > 127))
    return {{"quant_c3", text("must have a zero point in [-128, 127]; got ", zero_point)}};
  return {};
}

std::optional<std::string> shape_fault(const Shape& shape) {
  constexpr int64_t kMostElems = int64_t{1} << 48;
  int64_t elems = 1;  // nothing counting as one
  for (const Dim& size : shape) {
    if (!size.is_static()) continue;
    if (size.value() < 0) return text("a size is at least 0; found ", size.value(), " in ", hetnn::to_string(shape));
    if (__builtin_mul_overflow(elems, std::max<int64_t>(size.value(), 1), &elems) || elems > kMostElems)
      return text("a value has at most 2^48 elements; found more in ", hetnn::to_string(shape));
  }
  return {};
}

std::string to_string(const Type& type) {
  std::string out(dtype_name(type.dtype));
  if (type.quant) {
    out += "{";
    for (size_t k = 0; k < type.quant->scales.size(); ++k) out += (k ? "," : "") + number(type.quant->scales[k]);
    if (type.quant->zero_point != 0) out += ":" + std::to_string(type.quant->zero_point);
    out += "}";
  }
  return out + to_string(type.shape);
}

}  // namespace hetnn::ops
