// Rules for quantized values. Integers at one scale s stand for s·(q - z), so a change of scale is a depthwise
// convolution with kernels of 1, and a bound is a zero point that makes the i8 range end there.
#include <algorithm>
#include <array>
#include <cmath>

#include "hetnn/passes/legal/rules.h"
#include "hetnn/passes/tables.h"

namespace hetnn::passes::legal {
namespace {

constexpr int32_t kLowest = -128, kHighest = 127;

const ops::Quant& quant_of(const ir::Value& value) { return *value.type().quant; }
const ops::Quant& result_of(const Match& m) { return quant_of(*m.root()->output()); }

bool is_i8(const ir::Value* value) { return value && value->dtype() == DType::i8 && value->type().quant; }

bool has_channels(const ir::Value& x) {
  return x.rank() > 0 && x.shape()[static_cast<size_t>(channel_axis(x))].is_static() && channel_count(x) > 0;
}

bool is_quantized(const Match& m) {
  const ir::Node& root = *m.root();
  return is_i8(root.output()) && std::all_of(root.inputs().begin(), root.inputs().end(), is_i8) &&
         has_channels(*root.input(0));
}
constexpr Guard kQuantized = {"operands and result are i8 with scales, and the number of channels is fixed",
                              is_quantized};

bool is_rescaled(const Match& m) {
  const ir::Node& root = *m.root();
  return std::any_of(root.inputs().begin(), root.inputs().end(),
                     [&](const ir::Value* input) { return quant_of(*input) != result_of(m); });
}
constexpr Guard kRescaled = {"an operand has another scale than the result", is_rescaled};

// The same reals at another scale.
ir::Value* rescaled(Build& build, ir::Value* x, const ops::Quant& quant) {
  return quant_of(*x) == quant ? x : build.op("identity", {x}, ops::quant_attrs(quant));
}

// One weight for all channels.
ir::Value* times(Build& build, ir::Value* x, int8_t weight, const ops::Quant& quant) {
  return quantized_depthwise(build, x, channel_axis(*x), std::vector<int8_t>(channel_count(*x), weight), {1}, quant);
}

// A node as it is, but for the scale of its result.
ir::Value* at_scale(Build& build, const ir::Node& node, std::vector<ir::Value*> inputs, const ops::Quant& quant) {
  return build.like(node, std::move(inputs),
                    {{std::string(ops::kQuantScale), quant.scales},
                     {std::string(ops::kQuantZero), std::vector<Dim>{quant.zero_point()}}});
}

Rule identity() {
  return {.name = "rescale_as_depthwise",
          .equation = "x at another scale = x * 1, a depthwise 1x1 convolution at that scale",
          .pattern = op("identity", {any("x")}),
          .guards = {kQuantized, kRescaled},
          .exactness = "bit for bit: one rounding in both",
          .rewrite = [](const Match& m, Build& build) { return times(build, m.value("x"), 1, result_of(m)); },
          .quantized = true};
}

Rule relu() {
  return {.name = "relu_after_rescale",
          .equation = "relu(x) at another scale = relu(x at that scale)",
          .pattern = op("relu", {any("x")}),
          .guards = {kQuantized, kRescaled},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                return at_scale(build, *m.root(), {rescaled(build, m.value("x"), result_of(m))}, result_of(m));
              },
          .quantized = true};
}

Rule pool() {
  return {.name = "rescale_after_pool",
          .equation = "pool(x) at another scale = pool(x) at that of x, then at the other",
          .pattern = op("max_pool2d", {any("x")}),
          .guards = {kQuantized, kRescaled},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value* x = m.value("x");
                return rescaled(build, at_scale(build, *m.root(), {x}, quant_of(*x)), result_of(m));
              },
          .quantized = true};
}

Rule mean() {
  return {.name = "mean_as_depthwise",
          .equation = "mean of windows of n = depthwise conv2d(x, 1), the weight 1 standing for 1 / n",
          .pattern = one_of({"avg_pool2d", "adaptive_avg_pool2d"}, {any("x")}),
          .guards = {kQuantized,
                     kRescaled,
                     {"all windows have one divisor",
                      [](const Match& m) { return mean_window_of(*m.root()).has_value(); }}},
          .exactness = "one rounding in both; that of the integers halfway between two may differ",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            ir::Value* x = m.value("x");
            const MeanWindow window = *mean_window_of(*m.root());
            const std::vector<int64_t> shape = {static_cast<int64_t>(channel_count(*x)), 1, window.kernel[0].value(),
                                                window.kernel[1].value()};
            if (!build.affords(DType::i8, shape)) return nullptr;
            const std::vector<int8_t> ones(static_cast<size_t>(shape[0] * shape[2] * shape[3]), 1);
            ir::Value* weight =
                build.constant(Tensor::of(shape, ones), ops::Quant{{1 / static_cast<double>(window.divisor)}});
            ops::Attrs attrs = ops::quant_attrs(result_of(m));
            attrs.insert({{"stride", window.stride}, {"padding", window.padding}, {"groups", Dim(shape[0])}});
            return build.op("conv2d", {x, weight}, std::move(attrs));
          },
          .quantized = true};
}

// All pixels of an image of fixed size, so that sums of their integers have 32 bits.
bool is_of_whole_image(const Match& m) {
  constexpr int64_t kMostPixels = int64_t{1} << 22;
  const Shape &x = m.value("x")->shape(), &y = m.root()->output()->shape();
  const bool fixed = x[0].is_static() && x[2].is_static() && x[3].is_static();
  return fixed && y[2] == Dim(1) && y[3] == Dim(1) && x[2].value() * x[3].value() <= kMostPixels &&
         mean_window_of(*m.root()) && mean_window_of(*m.root())->divisor == x[2].value() * x[3].value();
}

// Channels lie side by side in every pixel, so that the pixels are the rows of a matrix as they are.
Rule mean_of_image() {
  return {.name = "mean_as_product",
          .equation = "mean of an image of n pixels = [1 / n, ..., 1 / n] times the matrix of its pixels",
          .pattern = one_of({"avg_pool2d", "adaptive_avg_pool2d"}, {any("x")}),
          .guards = {kQuantized,
                     kRescaled,
                     {"the size of the image is fixed, and all of it becomes one pixel", is_of_whole_image}},
          .exactness = "one rounding in both; that of the integers halfway between two may differ",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            ir::Value* x = m.value("x");
            const int64_t batch = x->shape()[0].value(), pixels = x->shape()[2].value() * x->shape()[3].value();
            const std::vector<int64_t> shape = {batch, 1, pixels};
            if (!build.affords(DType::i8, shape)) return nullptr;
            const std::vector<int8_t> ones(static_cast<size_t>(batch * pixels), 1);
            ir::Value* weight = build.constant(Tensor::of(shape, ones), ops::Quant{{1 / static_cast<double>(pixels)}});
            ir::Value* rows = build.op("permute", {x}, {{"perm", std::vector<Dim>{0, 2, 3, 1}}});
            rows = build.reshape(rows, {batch, pixels, x->shape()[1]});
            ir::Value* y = build.op("matmul", {weight, rows}, ops::quant_attrs(result_of(m)));
            return build.reshape(y, m.root()->output()->shape());
          },
          .quantized = true};
}

Rule concat() {
  return {.name = "concat_after_rescale",
          .equation = "concat(x, ...) at one scale = concat(x at that scale, ...)",
          .pattern = op("concat"),
          .guards = {kQuantized, kRescaled},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                std::vector<ir::Value*> parts;
                for (ir::Value* part : m.root()->inputs()) parts.push_back(rescaled(build, part, result_of(m)));
                return at_scale(build, *m.root(), std::move(parts), result_of(m));
              },
          .quantized = true};
}

// Whole numbers that bytes hold, one for each operand; none where a coefficient is no such number.
std::vector<int8_t> whole_coefficients(const ir::Node& sum) {
  const std::vector<double>& coefficients = sum.reals("coefficients");
  if (coefficients.empty()) return std::vector<int8_t>(sum.inputs().size(), 1);
  std::vector<int8_t> out;
  for (const double c : coefficients) {
    if (c != std::nearbyint(c) || std::abs(c) > kHighest) return {};
    out.push_back(static_cast<int8_t>(c));
  }
  return out;
}

bool is_sum_of_images(const Match& m) {
  const ir::Node& root = *m.root();
  const ops::Type& type = root.input(0)->type();
  return root.string("op") == "add" && type.shape.size() == 4 && type.quant->per_tensor() &&
         std::ranges::all_of(root.inputs(), [&](const ir::Value* x) { return x->type() == type; }) &&
         !whole_coefficients(root).empty();
}

// The images lie below one another, so that a window reaches over all of them.
Rule sum_of_several() {
  return {.name = "sum_as_depthwise",
          .equation = "c1 x1 + c2 x2 + ... = depthwise conv2d(the rows x1, x2, ...; [c1, c2, ...])",
          .pattern = op("nary"),
          .guards = {kQuantized,
                     {"it is a sum of images of one type, with whole coefficients up to 127", is_sum_of_images}},
          .exactness = "one rounding in both; that of the integers halfway between two may differ",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            const ir::Node& root = *m.root();
            const Shape& shape = root.output()->shape();
            const auto count = static_cast<int64_t>(root.inputs().size());
            const auto channels = static_cast<int64_t>(channel_count(*root.input(0)));
            if (!build.affords(DType::i8, std::array{channels, count})) return nullptr;
            std::vector<ir::Value*> rows;
            for (ir::Value* x : root.inputs())
              rows.push_back(build.reshape(x, {shape[0], shape[1], 1, shape[2] * shape[3]}));
            ops::Attrs joined = ops::quant_attrs(quant_of(*root.input(0)));
            joined.emplace("axis", Dim(2));
            ir::Value* all = build.op("concat", std::move(rows), std::move(joined));
            const std::vector<int8_t> taps = whole_coefficients(root);
            std::vector<int8_t> weights;
            for (int64_t c = 0; c < channels; ++c) weights.insert(weights.end(), taps.begin(), taps.end());
            ops::Attrs attrs = ops::quant_attrs(result_of(m));
            attrs.emplace("groups", Dim(channels));
            ir::Value* weight = build.constant(Tensor::of({channels, 1, count, 1}, weights), ops::Quant{{1}});
            return build.reshape(build.op("conv2d", {all, weight}, std::move(attrs)), shape);
          },
          .quantized = true};
}

// The slopes' integers with the sign turned, one a channel, where they have that sign (else 0), and their scales. The
// integer that has no opposite takes 127 at a larger scale.
struct Slopes {
  std::vector<int8_t> weights;
  std::vector<double> scales;
  bool any = false;
};
Slopes slopes_below(const Match& m, bool negative) {
  const ops::Quant& quant = quant_of(*m.value("a"));
  const auto values = m.tensor("a")->values<int8_t>();
  Slopes out;
  for (size_t c = 0; c < channel_count(*m.value("x")); ++c) {
    const size_t at = values.size() == 1 ? 0 : c;
    const int32_t steps = values[at] - quant.zero_point(at);
    const bool here = negative ? steps < 0 : steps > 0;
    const double excess = std::max(1.0, std::abs(steps) / 127.0);
    out.weights.push_back(static_cast<int8_t>(here ? std::nearbyint(-steps / excess) : 0));
    out.scales.push_back(quant.scale(at) * excess);
    out.any |= here;
  }
  return out;
}

Rule prelu_branches() {
  return {
      .name = "prelu_quantized_branches",
      .equation =
          "prelu(x, a) = relu(x) + a (-relu(-x)): -x saturates at 0 with zero point -128 at the scale of x; "
          "x and a x at the scale of y, with zero point -128 where they are positive, 127 where negative",
      .pattern = op("prelu", {any("x"), constant("a")}),
      .guards = {kQuantized},
      .exactness = "bit for bit the integer prelu that requantizes x and a x: one branch is 0, the other rounds once",
      .rewrite =
          [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const ops::Quant& y = result_of(m);
            const ops::Quant above{y.scales, {kLowest}}, below{y.scales, {kHighest}};
            // One branch for slopes of each sign, because a zero point holds for all channels.
            const Slopes up = slopes_below(m, true), down = slopes_below(m, false);
            if (!up.any && !down.any)  // a relu at the scale of y
              return build.op("relu", {times(build, x, 1, y)}, ops::quant_attrs(y));
            ir::Value* sum = times(build, x, 1, above);
            ir::Value* negative = times(build, x, -1, {quant_of(*x).scales, {kLowest}});
            auto branch = [&](const Slopes& slopes, const ops::Quant& quant, const ops::Quant& result) {
              ir::Value* scaled =
                  quantized_depthwise(build, negative, channel_axis(*x), slopes.weights, slopes.scales, quant);
              sum = build.op("add", {sum, scaled}, ops::quant_attrs(result));
            };
            if (up.any) branch(up, above, down.any ? above : y);
            if (down.any) branch(down, below, y);
            return sum;
          },
      .quantized = true};
}

Rule with_slope(std::string_view name, std::string_view equation, std::string_view op_name,
                ir::Value* (*rewrite)(const Match&, Build&)) {
  return {.name = name,
          .equation = equation,
          .pattern = op(op_name, {any("x")}),
          .guards = {kQuantized},
          .exactness = "bit for bit",
          .rewrite = rewrite,
          .quantized = true};
}

// A slope as 127 at a scale of its own; -1 as itself, so that both sides of an absolute value round alike.
ir::Value* prelu_of(const Match& m, Build& build, double slope) {
  const double steps = std::abs(slope) == 1 ? 1 : 127;
  const std::vector<int8_t> weight = {static_cast<int8_t>(slope > 0 ? steps : slope < 0 ? -steps : 0)};
  ir::Value* a = build.constant(Tensor::of({1}, weight), ops::Quant{{slope == 0 ? 1 : std::abs(slope) / steps}});
  return build.op("prelu", {m.value("x"), a}, ops::quant_attrs(result_of(m)));
}

// Steps from the zero point at which a bound of clamp lies, in the result's i8 range.
int32_t steps_of(const ops::Quant& quant, double bound) {
  const double steps = std::nearbyint(bound / quant.scale()) + quant.zero_point();
  return static_cast<int32_t>(std::clamp<double>(steps, kLowest, kHighest)) - quant.zero_point();
}

bool bounds_hold_zero(const Match& m) { return m.root()->real("min") <= 0 && m.root()->real("max") >= 0; }

Rule clamp() {
  return {.name = "clamp_by_saturation",
          .equation = "clamp(x, lo, hi) = x at scales whose i8 range ends at lo, then at hi, then at that of y",
          .pattern = op("clamp", {any("x")}),
          .guards = {kQuantized, {"lo <= 0 <= hi", bounds_hold_zero}},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                ir::Value* x = m.value("x");
                const ops::Quant& y = result_of(m);
                const int32_t low = steps_of(y, m.root()->real("min")), high = steps_of(y, m.root()->real("max"));
                if (low + y.zero_point() > kLowest) x = times(build, x, 1, {y.scales, {kLowest - low}});
                if (high + y.zero_point() < kHighest) x = times(build, x, 1, {y.scales, {kHighest - high}});
                return quant_of(*x) == y ? x : times(build, x, 1, y);
              },
          .quantized = true};
}

// Elementwise operators that compute on reals, and changes of scale.
std::vector<std::string_view> functions() {
  constexpr uint32_t kOther = ops::Trait::conversion | ops::Trait::integral | ops::Trait::movement;
  std::vector<std::string_view> out = {ops::kIdentity};
  for (const ops::OpDef* op : ops::OpTable::global().all()) {
    if (op->has(ops::Trait::elementwise) && (op->traits & kOther) == 0) out.push_back(op->name);
  }
  return out;
}

ir::Value* argument(const Match& m) {
  const ir::Node& root = *m.root();
  return root.op().name == ops::kIdentity ? root.input(0) : argument_of(root);
}

Rule table() {
  return {.name = "function_as_table",
          .equation = "f(x) = table[q + 128] with table[q + 128] = f(s (q - z)) at the scale of y; also f(x, c)",
          .pattern = one_of(functions()),
          .guards = {{"operands and result are i8 with one scale each, all operands but one being numbers",
                      [](const Match& m) {
                        const ir::Node& root = *m.root();
                        const bool quantized = is_i8(root.output()) && std::ranges::all_of(root.inputs(), is_i8);
                        return quantized && result_of(m).per_tensor() && argument(m) &&
                               quant_of(*argument(m)).per_tensor();
                      }}},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                const ir::Node* const alone[] = {m.root()};
                ops::Attrs attrs = ops::quant_attrs(result_of(m));
                attrs.emplace("table", table_of(alone, *argument(m)));
                return build.op("lookup", {argument(m)}, std::move(attrs));
              },
          .quantized = true};
}

}  // namespace

const RuleSet& quantized() {
  static const RuleSet set = {
      "quantized",
      "What holds for i8 alone: other scales, branches at scales of their own, tables.",
      {identity(), relu(), pool(), mean(), mean_of_image(), concat(), sum_of_several(), prelu_branches(),
       with_slope("leaky_relu_quantized", "leaky_relu(x; a) = prelu(x, a)", "leaky_relu",
                  [](const Match& m, Build& build) { return prelu_of(m, build, m.root()->real("negative_slope")); }),
       with_slope("abs_quantized", "abs(x) = prelu(x, -1)", "abs",
                  [](const Match& m, Build& build) { return prelu_of(m, build, -1); }),
       clamp(), table()}};
  return set;
}

}  // namespace hetnn::passes::legal
