// Conversions of whole tensors, and evaluation by way of them.
#include "hetnn/ops/quantized.h"

#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/steps.h"

namespace hetnn::ops {
namespace {

// Elements under one scale.
int64_t run_of(int64_t elems, const Quant& quant) {
  return std::max<int64_t>(1, elems / static_cast<int64_t>(quant.scales.size()));
}

template <typename T>
void to_reals(const T* from, int64_t elems, const Quant& quant, float* to) {
  const int64_t run = run_of(elems, quant);
  for (int64_t k = 0; k < elems; ++k)
    to[k] = real_of(from[k], quant.scales[static_cast<size_t>(k / run)], quant.zero_point);
}

template <typename T>
void to_integers(std::span<const float> from, const Quant& quant, T* to) {
  const auto run = static_cast<size_t>(run_of(static_cast<int64_t>(from.size()), quant));
  for (size_t k = 0; k < from.size(); ++k) to[k] = integer_of<T>(from[k], quant.scales[k / run], quant.zero_point);
}

}  // namespace

Tensor dequantize(const View& from, const Quant& quant) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::f32, {from.shape.begin(), from.shape.end()}, &data);
  auto* to = reinterpret_cast<float*>(data);
  if (from.dtype == DType::i8) {
    to_reals(from.values<int8_t>().data(), from.elems(), quant, to);
  } else {
    to_reals(from.values<int32_t>().data(), from.elems(), quant, to);
  }
  return out;
}

void quantize(const Tensor& reals, const Type& type, std::byte* to) {
  if (type.dtype == DType::i8) {
    to_integers(reals.values<float>(), *type.quant, reinterpret_cast<int8_t*>(to));
  } else {
    to_integers(reals.values<float>(), *type.quant, reinterpret_cast<int32_t*>(to));
  }
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
