// Roundings of sums in f32, and of biases.
#include "hetnn/passes/canonical/steps_apart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "hetnn/passes/canonical/integers_of.h"
#include "hetnn/passes/integer_layers.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::canonical {
namespace {

constexpr double kRounding = std::numeric_limits<float>::epsilon() / 2;
constexpr double kMostSteps = 1 << 7;
// How many products a sum whose length is a symbol is taken to have.
constexpr double kUnknownLength = 1 << 10;

double largest(const ops::Quant& quant) { return *std::ranges::max_element(quant.scales); }

// The products of one sum: a filter's weights, or what a product of matrices sums over.
double products_of(const ir::Node& layer) {
  const Shape& weight = layer.input(1)->shape();
  const bool of_filters = layer.op().primitive != ops::Primitive::product;
  double out = 1;
  for (size_t axis = of_filters ? 1 : weight.size() - 2; axis < (of_filters ? weight.size() : weight.size() - 1);
       ++axis)
    out *= weight[axis].is_static() ? static_cast<double>(weight[axis].value()) : kUnknownLength;
  return out;
}

// By how much rounding moves a bias at most.
double shift_of_bias(const ir::Node& layer, const ops::Quant& x, const ops::Quant& w) {
  const ir::Value* integers = has_bias(layer) ? integers_of(layer.input(2)) : nullptr;
  const Tensor* numbers = !has_bias(layer) ? nullptr
                          : integers       ? integers->producer() && integers->producer()->is_constant()
                                                 ? &integers->producer()->tensor("value")
                                                 : nullptr
                                           : layer.constant_input(2);
  if (!numbers) return 0;
  const std::vector<double> values = to_doubles(*numbers);
  double most = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    const double step = x.scale() * w.scale(k);
    const double of_sums = values[k] * (integers ? quant_of(*integers)->scale(k) / step : 1 / step);
    // An i32 at the scale of the sums, which f32 holds, is no whole number of f64's by a rounding.
    const double shift = std::abs(of_sums - std::nearbyint(of_sums));
    if (!integers || shift > std::abs(of_sums) * kRounding * 4) most = std::max(most, shift * step);
  }
  return most;
}

}  // namespace

double steps_apart_of_sums(const ir::Node& layer, const ops::Quant& result) {
  const bool adds_up = layer.op().primitive == ops::Primitive::convolution ||
                       layer.op().primitive == ops::Primitive::product || is_transposed(layer);
  const ir::Value *x = integers_of(layer.input(0)), *w = adds_up ? integers_of(layer.input(1)) : nullptr;
  if (!x || !w) return 0;
  const ops::Quant &of_x = *quant_of(*x), &of_w = *quant_of(*w);
  const double most = x->dtype() == DType::i16 ? kMostSteps * 256 : kMostSteps;
  const double product = most * largest(of_x) * kMostSteps * largest(of_w);
  // Products of random integers have a third of the largest one's size, their sums the root of so many times that, and
  // each addition rounds one of them by half of the last digit at most.
  const double rounded = kRounding / 2 * products_of(layer) * product / 3;
  return (rounded + shift_of_bias(layer, of_x, of_w)) / result.scale();
}

double steps_apart_of_quotients(double divisor) { return 1 / std::max(divisor, 2.0); }

double steps_apart_of_reciprocals() { return 2 * kRounding * kMostSteps; }

}  // namespace hetnn::passes::canonical
