// Pooling and means by each other and by convolutions.
#include <algorithm>
#include <array>
#include <cmath>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/ops/window.h"
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

constexpr std::string_view kSums = "the order of sums and one rounding of 1/n may differ";

std::vector<Dim> dims(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

ops::Window window_of(const Match& m) { return ops::window_of(m.root()->call()); }
bool is_unpadded(const ops::Window& window) {
  return std::ranges::none_of(window, [](const ops::WindowAxis& axis) { return axis.is_padded(); });
}

}  // namespace

std::optional<MeanWindow> mean_window_of(const ir::Node& pool) {
  const ir::Value& x = *pool.input(0);
  if (pool.op().name == "adaptive_avg_pool2d") {
    const std::vector<Dim>& size = pool.integers("output_size");
    std::vector<Dim> kernel;
    for (size_t k = 0; k < 2; ++k) {
      const Dim &from = x.shape()[2 + k], &to = size[k];
      if (!from.is_static() || !to.is_static() || to.value() < 1 || from.value() < 1 || from.value() % to.value() != 0)
        return std::nullopt;
      kernel.push_back(floor_div(from, to));
    }
    return MeanWindow{kernel, kernel, {0, 0}, kernel[0].value() * kernel[1].value()};
  }
  if (pool.flag("ceil_mode")) return std::nullopt;
  const ops::Window window = ops::window_of(pool.call());
  int64_t divisor = pool.integer("divisor_override").value();
  if (divisor == 0) {
    if (!pool.flag("count_include_pad") && !is_unpadded(window)) return std::nullopt;
    divisor = ops::taps_of(window);
  }
  return MeanWindow{{window[0].kernel, window[1].kernel}, ops::stride_attr(window), ops::padding_attr(window), divisor};
}

namespace {

bool has_one_divisor(const Match& m) { return mean_window_of(*m.root()).has_value(); }
constexpr Guard kOneDivisor = {"all windows have one divisor", has_one_divisor};

Pattern average() { return op("avg_pool2d", {any("x")}); }

Rule average_as_depthwise() {
  return {.name = "average_as_depthwise",
          .equation = "avg_pool2d(x; k) = depthwise conv2d(x, 1 / |k|)",
          .pattern = average(),
          .guards = {kChannelsFixed, kOneDivisor},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            ir::Value* x = m.value("x");
            const MeanWindow window = *mean_window_of(*m.root());
            const int64_t height = window.kernel[0].value(), width = window.kernel[1].value();
            const auto channels = static_cast<int64_t>(channel_count(*x));
            if (!build.affords(x->dtype(), std::array{channels, height, width})) return nullptr;
            const std::vector<double> weight(static_cast<size_t>(channels * height * width),
                                             1 / static_cast<double>(window.divisor));
            return build.op("conv2d", {x, build.constant(x->dtype(), {channels, 1, height, width}, weight)},
                            {{"stride", window.stride}, {"padding", window.padding}, {"groups", Dim(channels)}});
          }};
}

bool is_two_dimensional(const Match& m) {
  const ops::Window window = window_of(m);
  // Of an empty axis that is padded, the other axis alone would have no window.
  return window[0].kernel > 1 && window[1].kernel > 1 && !std::ranges::count(m.value("x")->shape(), Dim(0));
}
constexpr Guard kTwoDimensional = {"the window is larger than 1 both ways, and no axis is empty", is_two_dimensional};

// The same pooling of rows first, of columns then.
ir::Value* rows_then_columns(const Match& m, Build& build) {
  const ops::Window window = window_of(m);
  const std::string_view name = m.root()->op().name;
  const auto pool = [&](ir::Value* x, const ops::Window& along) {
    ops::Attrs attrs = {{"kernel", dims({along[0].kernel, along[1].kernel})},
                        {"stride", ops::stride_attr(along)},
                        {"padding", ops::padding_attr(along)},
                        {"ceil_mode", m.root()->flag("ceil_mode")}};
    if (m.root()->attrs().contains("dilation")) attrs.emplace("dilation", dims({along[0].dilation, along[1].dilation}));
    return build.op(name, {x}, std::move(attrs));
  };
  return pool(pool(m.value("x"), {window[0], {}}), {{}, window[1]});
}

bool is_plain_mean(const Match& m) { return m.root()->integer("divisor_override") == Dim(0) && has_one_divisor(m); }

Rule average_rows_then_columns() {
  return {.name = "average_rows_then_columns",
          .equation = "avg_pool2d(x; a x b) = avg_pool2d(avg_pool2d(x; a x 1); 1 x b)",
          .pattern = average(),
          .guards = {kTwoDimensional, {"every window's divisor is its size", is_plain_mean}},
          .exactness = kSums,
          .rewrite = rows_then_columns};
}

Rule maximum_rows_then_columns() {
  return {.name = "maximum_rows_then_columns",
          .equation = "max_pool2d(x; a x b) = max_pool2d(max_pool2d(x; a x 1); 1 x b)",
          .pattern = op("max_pool2d", {any("x")}),
          .guards = {kTwoDimensional},
          .exactness = "bit for bit",
          .rewrite = rows_then_columns};
}

// The divisor of n that is nearest below or at its root; 1 for primes.
int64_t middle_factor(int64_t n) {
  for (auto f = static_cast<int64_t>(std::sqrt(static_cast<double>(n))); f > 1; --f) {
    if (n % f == 0) return f;
  }
  return 1;
}

bool tiles_and_factors(const Match& m) {
  const ops::Window window = window_of(m);
  const auto tiles = [](const ops::WindowAxis& axis) { return axis.stride == axis.kernel; };
  return is_unpadded(window) && std::ranges::all_of(window, tiles) && is_plain_mean(m) &&
         (middle_factor(window[0].kernel) > 1 || middle_factor(window[1].kernel) > 1);
}

Rule average_of_averages() {
  return {
      .name = "average_of_averages",
      .equation = "avg_pool2d(x; a b, stride a b) = avg_pool2d(avg_pool2d(x; a, stride a); b, stride b)",
      .pattern = average(),
      .guards = {{"the windows tile the image without padding, and a side of them is no prime", tiles_and_factors}},
      .exactness = kSums,
      .rewrite = [](const Match& m, Build& build) {
        const ops::Window window = window_of(m);
        const int64_t rows = middle_factor(window[0].kernel), columns = middle_factor(window[1].kernel);
        const auto pool = [&](ir::Value* x, int64_t height, int64_t width) {
          return build.op("avg_pool2d", {x}, {{"kernel", dims({height, width})}, {"stride", dims({height, width})}});
        };
        return pool(pool(m.value("x"), rows, columns), window[0].kernel / rows, window[1].kernel / columns);
      }};
}

Rule adaptive_as_average() {
  return {.name = "adaptive_as_average",
          .equation = "adaptive_avg_pool2d(x; n) = avg_pool2d(x; size / n, stride size / n)",
          .pattern = op("adaptive_avg_pool2d", {any("x")}),
          .guards = {{"the output divides the image, of fixed size", has_one_divisor}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            const MeanWindow window = *mean_window_of(*m.root());
            return build.op("avg_pool2d", {m.value("x")}, {{"kernel", window.kernel}, {"stride", window.stride}});
          }};
}

bool is_over_pixels(const Match& m) {
  const ir::Value& x = *m.value("x");
  return is_float(x.dtype()) && x.rank() == 4 && ops::reduced_axes(m.root()->call()) == std::vector<int>{2, 3} &&
         x.shape()[2].is_static() && x.shape()[3].is_static() && x.shape()[2].value() * x.shape()[3].value() > 0;
}

Rule mean_as_average() {
  return {.name = "mean_as_average",
          .equation = "mean(x; height, width) = avg_pool2d(x; the whole image)",
          .pattern = op("mean", {any("x")}),
          .guards = {{"the mean is over height and width of an image of fixed size", is_over_pixels}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            const Shape& x = m.value("x")->shape();
            ir::Value* pooled = build.op("avg_pool2d", {m.value("x")}, {{"kernel", std::vector<Dim>{x[2], x[3]}}});
            return build.reshape(pooled, m.root()->output()->shape());
          }};
}

bool is_image_extreme(const Match& m) {
  const ir::Value& x = *m.value("x");
  const auto& quant = x.type().quant;
  const bool held = quant ? x.dtype() == DType::i8 && quant->per_tensor() && quant == m.root()->output()->type().quant
                          : is_float(x.dtype());
  return held && x.rank() == 4 && ops::reduced_axes(m.root()->call()) == std::vector<int>{2, 3} &&
         x.shape()[1].is_static() && channel_count(x) > 0 && x.shape()[2].is_static() && x.shape()[3].is_static() &&
         x.shape()[2].value() * x.shape()[3].value() > 0;
}
constexpr Guard kImageExtreme = {
    "x is real or i8 at the scale of the result, and it is over height and width of an image of fixed size",
    is_image_extreme};

// -x: of integers q less than 0 by one what q is above -1, so that all of them have an opposite.
ir::Value* opposite(Build& build, ir::Value* x) {
  const auto& quant = x->type().quant;
  if (!quant) return build.op("neg", {x});
  const std::vector<int8_t> weights(channel_count(*x), -1);
  return quantized_depthwise(build, x, channel_axis(*x), weights, {1}, {quant->scales, {-1 - quant->zero_point()}});
}

ir::Value* largest_of_image(Build& build, ir::Value* x) {
  const std::vector<Dim> size = {x->shape()[2], x->shape()[3]};
  ops::Attrs attrs = x->type().quant ? ops::quant_attrs(*x->type().quant) : ops::Attrs{};
  attrs.insert({{"kernel", size}, {"stride", size}});
  return build.op("max_pool2d", {x}, std::move(attrs));
}

Rule largest_as_pool() {
  return {.name = "largest_as_pool",
          .equation = "reduce_max(x; height, width) = max_pool2d(x; the whole image)",
          .pattern = op("reduce_max", {any("x")}),
          .guards = {kImageExtreme},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                return build.reshape(largest_of_image(build, m.value("x")), m.root()->output()->shape());
              },
          .quantized = true};
}

Rule least_as_pool() {
  return {.name = "least_as_pool",
          .equation = "reduce_min(x; height, width) = -max_pool2d(-x; the whole image); -x of the integer q is -1 - q",
          .pattern = op("reduce_min", {any("x")}),
          .guards = {kImageExtreme},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value* least = opposite(build, largest_of_image(build, opposite(build, m.value("x"))));
                return build.reshape(least, m.root()->output()->shape());
              },
          .quantized = true};
}

bool is_over_last_axis(const Match& m) {
  const ir::Value& x = *m.value("x");
  return has_arithmetic(x.dtype()) && x.rank() >= 2 &&
         ops::reduced_axes(m.root()->call()) == std::vector<int>{x.rank() - 1} && x.shape().back().is_static() &&
         x.shape().back().value() > 0;
}

Rule mean_as_linear() {
  return {.name = "mean_as_linear",
          .equation = "mean(x; last axis of K) = linear(x, [1/K, ..., 1/K])",
          .pattern = op("mean", {any("x")}),
          .guards = {{"the mean is over the last axis, of fixed size", is_over_last_axis}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const int64_t size = x->shape().back().value();
            const std::vector<double> weight(static_cast<size_t>(size), 1 / static_cast<double>(size));
            return build.reshape(build.op("linear", {x, build.constant(x->dtype(), {1, size}, weight)}),
                                 m.root()->output()->shape());
          }};
}

}  // namespace

const RuleSet& pooling() {
  static const RuleSet set = {
      "pooling",
      "Pooling, means and extremes by each other and by convolutions.",
      {mean_as_average(), mean_as_linear(), largest_as_pool(), least_as_pool(), adaptive_as_average(),
       average_of_averages(), average_rows_then_columns(), average_as_depthwise(), maximum_rows_then_columns()}};
  return set;
}

}  // namespace hetnn::passes::legal
