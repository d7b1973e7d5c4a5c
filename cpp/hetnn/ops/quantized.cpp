// Conversions of whole tensors, and evaluation by way of them.
#include "hetnn/ops/quantized.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "hetnn/base/convert.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/steps.h"
#include "hetnn/base/stored.h"
#include "hetnn/base/visit_dtype.h"

namespace hetnn::ops {
namespace {

// The C++ type that integers are converted as: the narrow ones and i32 as they are, others by way of i64.
template <typename F>
void visit_steps(DType dtype, F&& f) {
  if (is_stored(dtype) || dtype == DType::i64) return f(int64_t{});
  visit_dtype(dtype, [&]<typename T>(T zero) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 4) f(zero);
  });
}

}  // namespace

Tensor dequantize(const View& from, const Quant& quant) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::f32, {from.shape.begin(), from.shape.end()}, &data);
  auto* to = reinterpret_cast<float*>(data);
  visit_steps(from.dtype, [&]<typename T>(T) {
    std::vector<T> converted;
    const T* in = reinterpret_cast<const T*>(from.data);
    if (DTypeOf<T>::value != from.dtype) {
      for (int64_t k = 0; k < from.elems(); ++k)  // a stored one
        converted.push_back(static_cast<T>(stored_value(from.dtype, static_cast<uint8_t>(from.data[k]))));
      in = converted.data();
    }
    for_runs(from.shape, from.elems(), quant, [&](int64_t begin, int64_t end, size_t index) {
      const double scale = quant.scale(index);
      const int32_t zero = quant.zero_point(index);
      for (int64_t k = begin; k < end; ++k) to[k] = real_of(in[k], scale, zero);
    });
  });
  return out;
}

void quantize(const Tensor& reals, const Type& type, std::byte* to, bool halves_away) {
  const auto from = reals.values<float>();
  const std::pair<int64_t, int64_t> range = integer_range(type.dtype);
  visit_steps(type.dtype, [&]<typename T>(T) {
    std::vector<T> steps(from.size());
    for_runs(reals.shape(), reals.elems(), *type.quant, [&](int64_t begin, int64_t end, size_t index) {
      const double scale = type.quant->scale(index);
      const int32_t zero = type.quant->zero_point(index);
      for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
        steps[k] = halves_away ? integer_of<T, true>(from[k], scale, zero) : integer_of<T>(from[k], scale, zero);
        if (is_stored(type.dtype))
          steps[k] = static_cast<T>(std::clamp<int64_t>(static_cast<int64_t>(steps[k]), range.first, range.second));
      }
    });
    if constexpr (std::is_same_v<T, int64_t>)
      write_integers(type.dtype, steps.data(), reals.elems(), to);
    else
      std::memcpy(to, steps.data(), steps.size() * sizeof(T));
  });
}

bool is_narrow(const Type& type) { return is_narrow_float(type.dtype) || type.quant.has_value(); }

bool has_narrow(const Call& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const Operand& input) { return input.type && is_narrow(*input.type); }) ||
         std::any_of(call.outputs.begin(), call.outputs.end(), [](const Type* type) { return is_narrow(*type); });
}

Tensor widen(const Tensor& tensor, const Type& type) {
  if (!is_narrow(type)) return tensor;
  if (type.quant) return dequantize(tensor, *type.quant);
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::f32, tensor.shape(), &data);
  const auto* from = reinterpret_cast<const uint16_t*>(tensor.data());
  for (int64_t k = 0; k < tensor.elems(); ++k) reinterpret_cast<float*>(data)[k] = widen_float(type.dtype, from[k]);
  return out;
}

Tensor narrow(const Tensor& tensor, const Type& type) {
  if (!is_narrow(type)) return tensor;
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(type.dtype, tensor.shape(), &data);
  if (type.quant) {
    quantize(tensor, type, data);
    return out;
  }
  const auto from = tensor.values<float>();
  for (size_t k = 0; k < from.size(); ++k) reinterpret_cast<uint16_t*>(data)[k] = narrow_float(type.dtype, from[k]);
  return out;
}

}  // namespace hetnn::ops
