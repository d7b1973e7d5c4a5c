// Constants of rules as doubles.
#include "hetnn/passes/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hetnn/base/stored.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::passes {
namespace {

template <typename T>
std::vector<double> widen(const Tensor& tensor) {
  std::vector<double> out;
  out.reserve(static_cast<size_t>(tensor.elems()));
  for (T value : tensor.values<T>()) out.push_back(static_cast<double>(value));
  return out;
}

// Rows, as many as there are factors, each times its own, computed in double; `to` may be where they lie.
template <typename T>
void multiply_rows(std::span<const T> rows, std::span<const double> factors, T* to) {
  const size_t each = rows.size() / std::max<size_t>(factors.size(), 1);
  for (size_t row = 0; row < factors.size(); ++row) {
    for (size_t k = row * each; k < (row + 1) * each; ++k)
      to[k] = static_cast<T>(static_cast<double>(rows[k]) * factors[row]);
  }
}

// Whether all elements have the same bits.
bool repeats_one(const Tensor& tensor) {
  const auto bytes = static_cast<size_t>(tensor.bytes()), each = static_cast<size_t>(dtype_bytes(tensor.dtype()));
  return bytes <= each || std::memcmp(tensor.data(), tensor.data() + each, bytes - each) == 0;
}

double first_value(const Tensor& tensor) {
  std::byte* data = nullptr;
  const Tensor first = Tensor::zeros(tensor.dtype(), {1}, &data);
  std::memcpy(data, tensor.data(), static_cast<size_t>(first.bytes()));
  return to_doubles(first)[0];
}

}  // namespace

bool has_arithmetic(DType dtype) { return is_float(dtype); }

std::vector<double> to_doubles(const Tensor& tensor) {
  if (is_narrow_float(tensor.dtype())) return widen<float>(ops::widen(tensor, {tensor.dtype(), {}}));
  std::vector<double> out;
  if (is_stored(tensor.dtype())) {
    for (int64_t k = 0; k < tensor.elems(); ++k) {
      out.push_back(stored_value(tensor.dtype(), static_cast<uint8_t>(tensor.data()[k])));
    }
    return out;
  }
  return visit_dtype(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!kIsNarrowFloat<T>) return widen<T>(tensor);
    return out;
  });
}

Tensor from_doubles(DType dtype, std::vector<int64_t> shape, std::span<const double> values) {
  if (dtype == DType::f64) return Tensor::of(std::move(shape), values);
  if (!is_float(dtype)) throw Unsupported(text("rules make no ", dtype_name(dtype), " constants."));
  std::vector<float> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), [](double v) { return static_cast<float>(v); });
  return ops::narrow(Tensor::of(std::move(shape), rounded), {dtype, {}});
}

Tensor scaled(const Tensor& tensor, std::span<const double> scale) {
  if (tensor.dtype() == DType::f32) {  // weights are, and may take most of the memory there is
    std::byte* data = nullptr;
    Tensor out = Tensor::zeros(DType::f32, tensor.shape(), &data);
    multiply_rows(tensor.values<float>(), scale, reinterpret_cast<float*>(data));
    return out;
  }
  std::vector<double> values = to_doubles(tensor);
  multiply_rows<double>(values, scale, values.data());
  return from_doubles(tensor.dtype(), tensor.shape(), values);
}

Tensor with_scaled(const Tensor& tensor, std::span<const double> scale) {
  HETNN_ASSERT(tensor.rank() > 0);
  std::vector<int64_t> shape = tensor.shape();
  shape[0] *= 2;
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(tensor.dtype(), std::move(shape), &data);
  std::byte* const behind = std::ranges::copy(tensor.span(), data).out;
  if (tensor.dtype() == DType::f32) {
    multiply_rows(tensor.values<float>(), scale, reinterpret_cast<float*>(behind));
  } else {
    std::ranges::copy(scaled(tensor, scale).span(), behind);
  }
  return out;
}

std::optional<AxisConstant> along_one_axis(const Tensor& constant, const Shape& x, int preferred_axis) {
  if (x.empty() || constant.elems() == 0) return std::nullopt;
  const int rank = static_cast<int>(x.size()), offset = rank - constant.rank();
  for (int k = 0; k < -offset; ++k) {
    if (constant.shape()[static_cast<size_t>(k)] != 1) return std::nullopt;
  }
  const bool uniform = repeats_one(constant) && !std::isnan(first_value(constant));
  int varying = -1;
  for (int k = std::max(0, -offset); k < constant.rank(); ++k) {
    const int64_t size = constant.shape()[static_cast<size_t>(k)];
    if (size == 1) continue;
    const int axis = offset + k;
    if (varying >= 0 || x[static_cast<size_t>(axis)] != Dim(size)) return std::nullopt;
    if (!uniform) varying = axis;
  }
  // A constant of more dims than x would make the result longer than x.
  if (offset < 0) return std::nullopt;
  if (varying >= 0) return AxisConstant{varying, to_doubles(constant)};
  const int axis = std::min(preferred_axis, rank - 1);
  const Dim& size = x[static_cast<size_t>(axis)];
  if (!size.is_static() || size.value() > kMostChannels) return std::nullopt;
  return AxisConstant{axis, std::vector<double>(static_cast<size_t>(size.value()), first_value(constant))};
}

std::optional<double> single_value(const Tensor& constant) {
  if (constant.elems() != 1) return std::nullopt;
  return first_value(constant);
}

bool all_equal(const Tensor& constant, double value) {
  if (constant.elems() == 0) return true;
  if (!repeats_one(constant)) return false;
  const double found = first_value(constant);
  return found == value && (!is_float(constant.dtype()) || std::signbit(found) == std::signbit(value));
}

}  // namespace hetnn::passes
