// Conversions of whole tensors, and evaluation by way of them.
#include "hetnn/ops/quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/evaluate.h"

namespace hetnn::ops {
namespace {

// Elements under one scale.
int64_t run_of(const Tensor& tensor, const ir::Quant& quant) {
  return std::max<int64_t>(1, tensor.elems() / static_cast<int64_t>(quant.scales.size()));
}

template <typename T>
void dequantize(const Tensor& from, const ir::Quant& quant, float* to) {
  const auto values = from.values<T>();
  const auto run = static_cast<size_t>(run_of(from, quant));
  for (size_t k = 0; k < values.size(); ++k) {
    const double steps = static_cast<double>(values[k]) - quant.zero_point;
    to[k] = static_cast<float>(quant.scales[k / run] * steps);
  }
}

template <typename T>
void quantize(std::span<const float> from, size_t run, const ir::Quant& quant, T* to) {
  constexpr double kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (size_t k = 0; k < from.size(); ++k) {
    const double real = std::isnan(from[k]) ? 0 : static_cast<double>(from[k]);
    to[k] = static_cast<T>(std::clamp(std::nearbyint(real / quant.scales[k / run]) + quant.zero_point, kLow, kHigh));
  }
}

}  // namespace

bool is_narrow(const ir::Type& type) { return is_narrow_float(type.dtype) || type.quant.has_value(); }

bool has_narrow(const ir::Node& node) {
  auto narrow = [](const ir::Value* value) { return value && is_narrow(value->type()); };
  return std::any_of(node.inputs().begin(), node.inputs().end(), narrow) ||
         std::any_of(node.outputs().begin(), node.outputs().end(), narrow);
}

Tensor widen(const Tensor& tensor, const ir::Type& type) {
  if (!is_narrow(type)) return tensor;
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::f32, tensor.shape(), &data);
  auto* to = mutable_values<float>(data);
  if (is_narrow_float(type.dtype)) {
    const auto* from = reinterpret_cast<const uint16_t*>(tensor.data());
    for (int64_t k = 0; k < tensor.elems(); ++k) to[k] = widen_float(type.dtype, from[k]);
  } else if (type.dtype == DType::i8) {
    dequantize<int8_t>(tensor, *type.quant, to);
  } else {
    dequantize<int32_t>(tensor, *type.quant, to);
  }
  return out;
}

Tensor narrow(const Tensor& tensor, const ir::Type& type) {
  if (!is_narrow(type)) return tensor;
  const auto from = tensor.values<float>();
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(type.dtype, tensor.shape(), &data);
  if (is_narrow_float(type.dtype)) {
    for (size_t k = 0; k < from.size(); ++k) mutable_values<uint16_t>(data)[k] = narrow_float(type.dtype, from[k]);
    return out;
  }
  const auto run = static_cast<size_t>(run_of(tensor, *type.quant));
  if (type.dtype == DType::i8) {
    quantize(from, run, *type.quant, mutable_values<int8_t>(data));
  } else {
    quantize(from, run, *type.quant, mutable_values<int32_t>(data));
  }
  return out;
}

std::vector<Tensor> evaluate(const ir::Node& node, std::span<const std::optional<Tensor>> inputs,
                             const Bindings& bindings) {
  if (!node.op().evaluate) throw Unsupported(text(ir::describe(node), " has no reference meaning."));
  if (node.inputs().empty() || !has_narrow(node) || node.op().has(ir::Trait::integral))
    return node.op().evaluate({node, inputs, bindings});
  std::vector<std::optional<Tensor>> wide(inputs.begin(), inputs.end());
  for (size_t k = 0; k < wide.size(); ++k) {
    if (wide[k]) wide[k] = widen(*wide[k], node.input(k)->type());
  }
  std::vector<Tensor> results = node.op().evaluate({node, wide, bindings});
  for (size_t k = 0; k < results.size(); ++k) results[k] = narrow(results[k], node.output(k)->type());
  return results;
}

}  // namespace hetnn::ops
