// Pooling and means by each other and by convolutions.
#include <algorithm>
#include <array>
#include <cmath>

#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

constexpr std::string_view kSums = "the order of sums and one rounding of 1/n may differ";

using Pair = std::array<int64_t, 2>;

Pair pair_of(const ir::Node& node, std::string_view attr) {
  const std::vector<Dim>& given = node.integers(attr);
  return {given.front().value(), given.back().value()};
}
Pair stride_of(const ir::Node& pool) { return pair_of(pool, pool.integers("stride").empty() ? "kernel" : "stride"); }
std::array<int64_t, 4> padding_of(const ir::Node& pool) {
  const std::vector<Dim>& p = pool.integers("padding");
  const auto at = [&](size_t k) { return p[p.size() == 1 ? 0 : p.size() == 2 ? k % 2 : k].value(); };
  return {at(0), at(1), at(2), at(3)};
}
std::vector<Dim> dims(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

bool is_unpadded(const ir::Node& pool) { return padding_of(pool) == std::array<int64_t, 4>{}; }

// Whether every window divides by one number; that number.
std::optional<int64_t> divisor_of(const ir::Node& pool) {
  if (pool.flag("ceil_mode")) return std::nullopt;
  const Pair kernel = pair_of(pool, "kernel");
  if (pool.integer("divisor_override") != Dim(0)) return pool.integer("divisor_override").value();
  if (!pool.flag("count_include_pad") && !is_unpadded(pool)) return std::nullopt;
  return kernel[0] * kernel[1];
}
bool has_one_divisor(const Match& m) { return divisor_of(*m.root()).has_value(); }
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
            const Pair kernel = pair_of(*m.root(), "kernel"), stride = stride_of(*m.root());
            const auto p = padding_of(*m.root());
            const auto channels = static_cast<int64_t>(channel_count(*x));
            if (!build.affords(x->dtype(), std::array{channels, kernel[0], kernel[1]})) return nullptr;
            const std::vector<double> weight(static_cast<size_t>(channels * kernel[0] * kernel[1]),
                                             1 / static_cast<double>(*divisor_of(*m.root())));
            return build.op("conv2d", {x, build.constant(x->dtype(), {channels, 1, kernel[0], kernel[1]}, weight)},
                            {{"stride", dims({stride[0], stride[1]})},
                             {"padding", dims({p[0], p[1], p[2], p[3]})},
                             {"groups", Dim(channels)}});
          }};
}

bool is_two_dimensional(const Match& m) {
  const Pair kernel = pair_of(*m.root(), "kernel");
  // Of an empty axis that is padded, the other axis alone would have no window.
  return kernel[0] > 1 && kernel[1] > 1 && !std::ranges::count(m.value("x")->shape(), Dim(0));
}
constexpr Guard kTwoDimensional = {"the window is larger than 1 both ways, and no axis is empty", is_two_dimensional};

// The same pooling of rows first, of columns then.
ir::Value* rows_then_columns(const Match& m, Build& build, std::string_view name, const ops::Attrs& rows_extra,
                             const ops::Attrs& columns_extra) {
  const Pair kernel = pair_of(*m.root(), "kernel"), stride = stride_of(*m.root());
  const auto p = padding_of(*m.root());
  ops::Attrs rows = {
      {"kernel", dims({kernel[0], 1})}, {"stride", dims({stride[0], 1})}, {"padding", dims({p[0], 0, p[2], 0})}};
  ops::Attrs columns = {
      {"kernel", dims({1, kernel[1]})}, {"stride", dims({1, stride[1]})}, {"padding", dims({0, p[1], 0, p[3]})}};
  rows.insert(rows_extra.begin(), rows_extra.end());
  columns.insert(columns_extra.begin(), columns_extra.end());
  return build.op(name, {build.op(name, {m.value("x")}, rows)}, columns);
}

bool is_plain_mean(const Match& m) { return m.root()->integer("divisor_override") == Dim(0) && has_one_divisor(m); }

Rule average_rows_then_columns() {
  return {.name = "average_rows_then_columns",
          .equation = "avg_pool2d(x; a x b) = avg_pool2d(avg_pool2d(x; a x 1); 1 x b)",
          .pattern = average(),
          .guards = {kTwoDimensional, {"every window's divisor is its size", is_plain_mean}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) { return rows_then_columns(m, build, "avg_pool2d", {}, {}); }};
}

Rule maximum_rows_then_columns() {
  return {.name = "maximum_rows_then_columns",
          .equation = "max_pool2d(x; a x b) = max_pool2d(max_pool2d(x; a x 1); 1 x b)",
          .pattern = op("max_pool2d", {any("x")}),
          .guards = {kTwoDimensional},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            const Pair dilation = pair_of(*m.root(), "dilation");
            const bool ceil = m.root()->flag("ceil_mode");
            return rows_then_columns(m, build, "max_pool2d",
                                     {{"dilation", dims({dilation[0], 1})}, {"ceil_mode", ceil}},
                                     {{"dilation", dims({1, dilation[1]})}, {"ceil_mode", ceil}});
          }};
}

// The divisor of n that is nearest below or at its root; 1 for primes.
int64_t middle_factor(int64_t n) {
  for (auto f = static_cast<int64_t>(std::sqrt(static_cast<double>(n))); f > 1; --f) {
    if (n % f == 0) return f;
  }
  return 1;
}

bool tiles_and_factors(const Match& m) {
  const Pair kernel = pair_of(*m.root(), "kernel");
  return is_unpadded(*m.root()) && stride_of(*m.root()) == kernel && is_plain_mean(m) &&
         (middle_factor(kernel[0]) > 1 || middle_factor(kernel[1]) > 1);
}

Rule average_of_averages() {
  return {
      .name = "average_of_averages",
      .equation = "avg_pool2d(x; a b, stride a b) = avg_pool2d(avg_pool2d(x; a, stride a); b, stride b)",
      .pattern = average(),
      .guards = {{"the windows tile the image without padding, and a side of them is no prime", tiles_and_factors}},
      .exactness = kSums,
      .rewrite = [](const Match& m, Build& build) {
        const Pair kernel = pair_of(*m.root(), "kernel");
        const Pair first = {middle_factor(kernel[0]), middle_factor(kernel[1])};
        const auto pool = [&](ir::Value* x, int64_t height, int64_t width) {
          return build.op("avg_pool2d", {x}, {{"kernel", dims({height, width})}, {"stride", dims({height, width})}});
        };
        return pool(pool(m.value("x"), first[0], first[1]), kernel[0] / first[0], kernel[1] / first[1]);
      }};
}

bool divides_evenly(const Match& m) {
  const Shape& x = m.value("x")->shape();
  const std::vector<Dim>& size = m.root()->integers("output_size");
  for (size_t k = 0; k < 2; ++k) {
    if (!x[2 + k].is_static() || !size[k].is_static() || size[k].value() < 1) return false;
    if (x[2 + k].value() < 1 || x[2 + k].value() % size[k].value() != 0) return false;
  }
  return true;
}

Rule adaptive_as_average() {
  return {.name = "adaptive_as_average",
          .equation = "adaptive_avg_pool2d(x; n) = avg_pool2d(x; size / n, stride size / n)",
          .pattern = op("adaptive_avg_pool2d", {any("x")}),
          .guards = {{"the output divides the image, of fixed size", divides_evenly}},
          .exactness = kSums,
          .rewrite = [](const Match& m, Build& build) {
            const Shape& x = m.value("x")->shape();
            const std::vector<Dim>& size = m.root()->integers("output_size");
            const std::vector<Dim> kernel = {floor_div(x[2], size[0]), floor_div(x[3], size[1])};
            return build.op("avg_pool2d", {m.value("x")}, {{"kernel", kernel}, {"stride", kernel}});
          }};
}

std::vector<int64_t> axes_of(const ir::Node& mean) {
  const auto rank = static_cast<int64_t>(mean.input(0)->rank());
  std::vector<int64_t> out;
  for (const Dim& axis : mean.integers("axes")) out.push_back(axis.value() < 0 ? axis.value() + rank : axis.value());
  std::sort(out.begin(), out.end());
  return out;
}

bool is_over_pixels(const Match& m) {
  const ir::Value& x = *m.value("x");
  return is_float(x.dtype()) && x.rank() == 4 && axes_of(*m.root()) == std::vector<int64_t>{2, 3} &&
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

bool is_over_last_axis(const Match& m) {
  const ir::Value& x = *m.value("x");
  return has_arithmetic(x.dtype()) && x.rank() >= 2 && axes_of(*m.root()) == std::vector<int64_t>{x.rank() - 1} &&
         x.shape().back().is_static() && x.shape().back().value() > 0;
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
  static const RuleSet set = {"pooling",
                              "Pooling and means by each other and by convolutions.",
                              {mean_as_average(), mean_as_linear(), adaptive_as_average(), average_of_averages(),
                               average_rows_then_columns(), average_as_depthwise(), maximum_rows_then_columns()}};
  return set;
}

}  // namespace hetnn::passes::legal
