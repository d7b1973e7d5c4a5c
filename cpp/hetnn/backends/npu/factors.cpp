#include "hetnn/backends/npu/factors.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/base/requantize.h"

namespace hetnn::backends::scheduling {
namespace {

// Sums and extremes are formed at a common scale with more bits; products as they are.
std::vector<double> combined(const Layer& layer, const std::array<const ir::Value*, 3>& pair) {
  const auto scale = [&](size_t k) { return pair[k]->type().quant->scale(); };
  const double sa = scale(0), sb = scale(1), sy = scale(2);
  const double common = 2 * std::max(sa, sb);
  const bool product = layer.op == npu::ElementwiseOp::mul;
  return {sa / common, sb / common, product ? sa * sb / sy : common / (sy * (1 << kElementwiseBits))};
}

}  // namespace

std::vector<double> product_factors_of(const Layer& layer, Rounding rounding) {
  const ir::Node& node = layer.node();
  const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant,
                   &y = *node.output()->type().quant;
  std::vector<double> out(static_cast<size_t>(layer.product.out_c));
  for (size_t k = 0; k < out.size(); ++k) out[k] = factor_between(x.scale() * w.scale(k), y.scale(), rounding);
  return out;
}

std::vector<double> pair_factors_of(const Layer& layer) { return combined(layer, pair_of(layer)); }

std::vector<double> addend_factors_of(const Layer& layer) { return combined(layer, addend_pair_of(layer)); }

std::array<const ir::Value*, 3> pair_of(const Layer& layer) {
  return {layer.inputs[0], layer.row ? layer.row : layer.inputs[1], layer.node().output()};
}

std::array<const ir::Value*, 3> addend_pair_of(const Layer& layer) {
  return {layer.node().output(), layer.addend(), layer.epilogue.sum};
}

SoftmaxTable softmax_table_of(const Layer& layer) {
  const ir::Node& node = layer.node();
  return softmax_table(node.input(0)->type().quant->scale(), node.output()->type().quant->scale());
}

std::optional<NormalFactors> normal_factors_of(const Layer& layer) {
  const ir::Node& node = layer.node();
  const auto reals = [&](size_t input, double absent) {
    std::vector<double> out(static_cast<size_t>(layer.out.c), absent);
    if (const Tensor* given = input < node.inputs().size() ? node.constant_input(input) : nullptr)
      std::ranges::copy(given->values<float>(), out.begin());
    return out;
  };
  return normal_factors(reals(1, 1), reals(2, 0), node.real("eps"), node.input(0)->type().quant->scale(),
                        node.output()->type().quant->scale());
}

std::string why_no_factors(const Layer& layer) {
  if (layer.dtype != DType::i8) return {};
  const ir::Node& node = layer.node();
  if (layer.form == Form::rows && node.op().primitive == ops::Primitive::normalize) {
    if (normal_factors_of(layer)) return {};
    return text(ir::describe(node), ": rows are of at most ", kMostNormalized,
                " elements, and weight, bias and eps fit 32 bits at its scales; got ",
                ops::to_string(node.input(0)->type()), " to ", ops::to_string(node.output()->type()), ".");
  }
  const bool product = layer.form == Form::product || layer.form == Form::matrices;
  std::vector<double> factors;
  if (product) factors = product_factors_of(layer, Rounding::single_rounding);
  if (layer.form == Form::pair) factors = pair_factors_of(layer);
  if (layer.form == Form::rows) factors = {1 / node.output()->type().quant->scale()};
  if (layer.addend()) {
    for (const double factor : addend_factors_of(layer)) factors.push_back(factor);
  }
  const auto odd = std::find_if_not(factors.begin(), factors.end(), has_requant);
  if (odd != factors.end()) return text(ir::describe(node), ": ", no_requant(*odd));
  if (!product || !layer.product.biased) return {};
  const ops::Type& bias = node.input(2)->type();
  if (bias.quant && bias.dtype == DType::i32) return {};
  return text(ir::describe(node), ": a quantized layer's bias must be i32 with scales; got ", ops::to_string(bias),
              ".");
}

}  // namespace hetnn::backends::scheduling
