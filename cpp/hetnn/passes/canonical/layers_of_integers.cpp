// Operands and biases as integers.
#include "hetnn/passes/canonical/layers_of_integers.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "hetnn/ops/integers.h"
#include "hetnn/passes/integer_layers.h"

namespace hetnn::passes::canonical {
namespace {

// The largest integers of a bias leave room for the sums.
constexpr double kMostBias = 1 << 30;

// A bias as integers at the scale of the sums, one scale for each filter; null where it has none.
ir::Value* bias_of(const ir::Node& layer, Build& build) {
  if (ir::Value* integers = integers_of(layer.input(2))) return integers->dtype() == DType::i32 ? integers : nullptr;
  const Tensor* reals = layer.constant_input(2);
  if (!reals || reals->dtype() != DType::f32) return nullptr;
  const ops::Quant &x = *quant_of(*integers_of(layer.input(0))), &w = *quant_of(*integers_of(layer.input(1)));
  ops::Quant quant;
  for (double scale : w.scales) quant.scales.push_back(scale * x.scale());
  const auto from = reals->values<float>();
  std::vector<int32_t> to(from.size());
  for (size_t k = 0; k < to.size(); ++k) {
    const double steps = std::nearbyint(from[k] / quant.scale(k));
    if (!(std::abs(steps) <= kMostBias)) return nullptr;
    to[k] = static_cast<int32_t>(steps);
  }
  return build.constant(Tensor::of<int32_t>(reals->shape(), to), quant);
}

// One number of f32, as which an elementwise node has an operand.
std::optional<float> number_of(const ir::Node& node, size_t input) {
  const Tensor* constant = node.constant_input(input);
  const bool counts = node.op().has(ops::Trait::elementwise) && constant && constant->dtype() == DType::f32;
  if (!counts || constant->elems() != 1 || !std::isfinite(constant->values<float>()[0])) return std::nullopt;
  return constant->values<float>()[0];
}

// An integer that stands for exactly that number.
ir::Value* as_integer(float number, const ir::Value& value, DType dtype, Build& build) {
  const float step = number > 0 ? 1.0F : number < 0 ? -1.0F : 0.0F;
  const std::vector<int64_t> shape(static_cast<size_t>(value.rank()), 1);
  const ops::Quant quant{{step == 0 ? 1.0 : std::abs(double{number})}};
  if (dtype == DType::i16)
    return build.constant(Tensor::of<int16_t>(shape, std::vector{static_cast<int16_t>(step)}), quant);
  return build.constant(Tensor::of<int8_t>(shape, std::vector{static_cast<int8_t>(step)}), quant);
}

// Layers, and elementwise nodes with one operand that is no number.
bool computes_integers(const ir::Node& node) {
  if (computes(node)) return true;
  size_t values = 0;
  for (size_t k = 0; k < node.inputs().size(); ++k) values += node.input(k) && !number_of(node, k);
  return node.op().has(ops::Trait::elementwise) && !node.op().has(ops::Trait::conversion) && values == 1;
}

}  // namespace

bool reads_integers(const ir::Node& layer, DType result) {
  if (!computes_integers(layer)) return false;
  const size_t operands = operands_of(layer);
  // Weights of i16 activations are i8.
  const auto fits = [&](const ir::Value& integers) {
    const bool is_weight = integers.producer() && integers.producer()->is_constant();
    return (result == DType::i8 || result == DType::i16) &&
           (integers.dtype() == result || (is_weight && integers.dtype() == DType::i8));
  };
  bool reads_result_type = false;
  for (size_t k = 0; k < operands; ++k) {
    if (!layer.input(k) || number_of(layer, k)) continue;
    const ir::Value* integers = integers_of(layer.input(k));
    if (!integers || !fits(*integers)) return false;
    // A transposed layer may have those of each group's filters.
    if (k == 1 && !is_transposed(layer) && !ops::has_scales_of_filters(layer.call(), integers->type())) return false;
    reads_result_type = reads_result_type || integers->dtype() == result;
  }
  for (size_t k = operands; !has_bias(layer) && k < layer.inputs().size(); ++k) {
    const ir::Value* source = integers_of(layer.input(k)) ? integers_of(layer.input(k)) : layer.input(k);
    if (source && !(source->producer() && source->producer()->is_constant())) return false;
  }
  return reads_result_type;
}

bool sums_integers(const ir::Node& layer) {
  if (layer.op().primitive != ops::Primitive::convolution || !reads_integers(layer, DType::i8)) return false;
  if (layer.inputs().size() < 3 || !layer.input(2)) return true;
  const ir::Value* source = integers_of(layer.input(2)) ? integers_of(layer.input(2)) : layer.input(2);
  return source->producer() && source->producer()->is_constant();
}

std::vector<ir::Value*> integer_inputs(const ir::Node& layer, DType result, Build& build) {
  std::vector<ir::Value*> inputs;
  for (size_t k = 0; k < layer.inputs().size(); ++k) {
    ir::Value* input = layer.input(k);
    if (const std::optional<float> number = number_of(layer, k))
      inputs.push_back(as_integer(*number, *input, result, build));
    else
      inputs.push_back(input && k < operands_of(layer) ? integers_of(input) : input);
  }
  if (has_bias(layer)) {
    inputs[2] = bias_of(layer, build);
    if (!inputs[2]) return {};
  }
  return inputs;
}

ir::Value* on_integers(const ir::Node& layer, std::vector<ir::Value*> inputs, const ops::Quant& result, Build& build) {
  ops::Attrs attrs = layer.attrs();
  for (auto& [name, value] : ops::quant_attrs(result)) attrs.insert_or_assign(name, value);
  return build.op(layer.op().name, std::move(inputs), std::move(attrs));
}

}  // namespace hetnn::passes::canonical
