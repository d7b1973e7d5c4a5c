// Layers with slopes behind them, between conversions: one layer for the positive side and one for the negative.
#include <algorithm>
#include <cmath>
#include <vector>

#include "hetnn/passes/canonical/layers_of_integers.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/canonical/steps_apart.h"
#include "hetnn/passes/integer_layers.h"

namespace hetnn::passes::canonical {
namespace {

constexpr int32_t kLowest = -128, kHighest = 127;

// Slopes below 0, one or one a channel; none where the node has no such.
std::vector<double> slopes_of(const ir::Node& node) {
  if (node.op().name == "leaky_relu") return {node.real("negative_slope")};
  const Tensor* slopes = node.op().name == "prelu" ? node.constant_input(1) : nullptr;
  return slopes ? to_doubles(*slopes) : std::vector<double>{};
}

// A layer whose sums have steps that weights' scales say, and positive slopes behind it, one or one a filter.
struct Sloped {
  const ir::Node* layer = nullptr;
  std::vector<double> slopes;
};

Sloped sloped_of(const Match& m) {
  const ir::Value& y = *m.value("y");
  const ir::Node* function = y.producer();
  if (!function || y.uses().size() != 1) return {};
  std::vector<double> slopes = slopes_of(*function);
  const ir::Node* layer = slopes.empty() ? nullptr : function->input(0)->producer();
  if (!layer || layer->outputs().size() != 1 || layer->output()->uses().size() != 1) return {};
  const bool is_convolution = layer->op().primitive == ops::Primitive::convolution;
  // Channels lie along axis 1.
  const bool is_by_filter = is_convolution || layer->output()->rank() == 2;
  if ((!is_convolution && layer->op().name != "linear") || (slopes.size() > 1 && !is_by_filter)) return {};
  const ir::Value* weights = integers_of(layer->input(1));
  const bool fixed = weights && weights->producer() && weights->producer()->is_constant();
  const bool positive = std::ranges::all_of(slopes, [](double a) { return a > 0 && std::isfinite(a); });
  return fixed && positive ? Sloped{layer, std::move(slopes)} : Sloped{};
}

// A constant that stands for slopes times its reals, a slope for all or for each filter; null where a scale is lost.
ir::Value* times(const ir::Value& constant, const std::vector<double>& slopes, Build& build) {
  ops::Quant quant = *quant_of(constant);
  quant.scales.resize(std::max(quant.scales.size(), slopes.size()), quant.scales[0]);
  for (size_t k = 0; k < quant.scales.size(); ++k) {
    quant.scales[k] *= slopes[slopes.size() == 1 ? 0 : k];
    if (!std::isnormal(static_cast<float>(quant.scales[k]))) return nullptr;
  }
  return build.constant(constant.producer()->tensor("value"), quant);
}

}  // namespace

Rule slopes_of_integers() {
  return {
      .name = "slopes_of_integers",
      .equation =
          "quantize(prelu(f(dequantize(x), w, b), a)) = f(x, w, b) + f(x, a w, a b) on the integers, the "
          "first bounded below and the second above by 0, at which their ranges end",
      .pattern = op("quantize", {any("y")}),
      .guards = {{"nothing else reads y, of prelu or leaky_relu with positive slopes, nor f's result, a convolution "
                  "or linear layer with constant weights, with a slope or one a filter",
                  [](const Match& m) { return sloped_of(m).layer != nullptr; }},
                 {"the result is i8, and f can be a layer of integers",
                  [](const Match& m) {
                    return m.root()->output()->dtype() == DType::i8 &&
                           !m.root()->attrs().contains(ops::kQuantRounding) &&
                           reads_integers(*sloped_of(m).layer, DType::i8);
                  }}},
      .exactness = "as quantized types mean it; a bias of reals moves by half a step of the sums at most",
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        const auto [layer, slopes] = sloped_of(m);
        if (build.graph().is_output(m.value("y")) || build.graph().is_output(layer->output())) return nullptr;
        const std::vector<ir::Value*> inputs = integer_inputs(*layer, DType::i8, build);
        if (inputs.empty()) return nullptr;
        std::vector<ir::Value*> sloped = inputs;
        for (size_t k = 1; k < sloped.size(); ++k) {
          if (sloped[k]) sloped[k] = times(*sloped[k], slopes, build);
          if (inputs[k] && !sloped[k]) return nullptr;
        }
        const ops::Quant& result = *quant_of(*m.root()->output());
        ir::Value* above = on_integers(*layer, inputs, {result.scales, {kLowest}}, build);
        ir::Value* below = on_integers(*layer, sloped, {result.scales, {kHighest}}, build);
        return build.op("add", {above, below}, ops::quant_attrs(result));
      },
      .quantized = true,
      .steps_apart =
          [](const Match& m) {
            const auto [layer, slopes] = sloped_of(m);
            return std::max(1.0, std::ranges::max(slopes)) *
                   steps_apart_of_sums(*layer, *quant_of(*m.root()->output()));
          }};
}

}  // namespace hetnn::passes::canonical
