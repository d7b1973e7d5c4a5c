// Types as text, and quantization as attributes.
#include "hetnn/ops/type.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/base/stored.h"

namespace hetnn::ops {
namespace {

std::string number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

bool Quant::has_zero_point() const {
  return std::ranges::any_of(zero_points, [](int32_t zero) { return zero != 0; });
}

Attrs quant_attrs(const Quant& quant) {
  Attrs out{{std::string(kQuantScale), quant.scales}};
  if (quant.has_zero_point())
    out.emplace(kQuantZero, std::vector<Dim>(quant.zero_points.begin(), quant.zero_points.end()));
  if (quant.axis != 0) out.emplace(kQuantAxis, Dim(quant.axis));
  return out;
}

Attrs quantize_attrs(const Type& type) {
  Attrs out = quant_attrs(*type.quant);
  out.emplace("to", type.dtype);
  return out;
}

bool may_be_quantized(DType dtype) {
  constexpr DType kMay[] = {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64};
  if (is_stored(dtype)) return !is_stored_float(dtype);
  return std::ranges::find(kMay, dtype) != std::end(kMay);
}

std::optional<QuantFault> quant_fault(const Type& type) {
  if (!type.quant) return {};
  const auto& [scales, zero_points, axis] = *type.quant;
  const bool positive =
      !scales.empty() && std::ranges::all_of(scales, [](double s) { return s > 0 && std::isfinite(s); });
  if (!positive || !may_be_quantized(type.dtype)) {
    return {{"quant_c1", text("must be of integers that may stand for reals, with finite positive scales; got ",
                              dtype_name(type.dtype), " and ", scales.size(), " scales",
                              scales.empty() ? std::string() : text(" from ", scales[0]))}};
  }
  // f32 computes with them, but for sums, whose scales are products of two that it has.
  if (type.dtype != DType::i32 && type.dtype != DType::i64) {
    for (const double scale : scales) {
      if (std::isfinite(static_cast<float>(scale)) && static_cast<float>(scale) > 0) continue;
      return {{"quant_c4", text("must have scales that f32 has, from 1.4e-45 to 3.4e38; got ", number(scale), " for ",
                                dtype_name(type.dtype))}};
    }
  }
  const bool has_axis = axis >= 0 && axis < type.rank();
  if ((scales.size() > 1 &&
       (!has_axis || type.shape[static_cast<size_t>(axis)] != Dim(static_cast<int64_t>(scales.size())))) ||
      (zero_points.size() != 1 && zero_points.size() != scales.size()) || (scales.size() == 1 && axis != 0)) {
    return {{"quant_c2", text("must have one scale, or one for each index of an axis, and as many zero points or one; "
                              "got ",
                              scales.size(), " scales and ", zero_points.size(), " zero points along axis ", axis,
                              " for ", hetnn::to_string(type.shape))}};
  }
  const auto [least, most] = integer_range(type.dtype);
  for (const int32_t zero : zero_points) {
    if (zero < least || zero > most)
      return {{"quant_c3", text("must have a zero point in [", least, ", ", most, "]; got ", zero)}};
  }
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
    if (type.quant->has_zero_point()) {
      const std::vector<int32_t>& zeros = type.quant->zero_points;
      for (size_t k = 0; k < zeros.size(); ++k) out += (k ? "," : ":") + std::to_string(zeros[k]);
    }
    if (type.quant->axis != 0) out += "@" + std::to_string(type.quant->axis);
    out += "}";
  }
  return out + to_string(type.shape);
}

}  // namespace hetnn::ops
