// Folds what follows or precedes a convolution or linear layer, channel by channel, into its weights; in double.
#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::canonical {
namespace {

constexpr std::string_view kExact = "exact in real arithmetic; the weights are computed in double and rounded once";

Pattern layer(std::vector<std::string_view> names) {
  return exclusive(one_of(std::move(names), {any("x"), constant("w"), optional_constant("b")}, "layer"));
}
Pattern convolution_or_linear() { return layer({"conv1d", "conv2d", "conv3d", "linear"}); }

// The axis of the output that the layer's filters run along: the last for linear, whose weight is a matrix, else 1.
int filter_axis(const ir::Node& layer) { return layer.input(1)->rank() == 2 ? layer.output()->rank() - 1 : 1; }

// y = layer(x)·scale + shift, filter by filter. Weights hold the filters on axis 0.
ir::Value* fold_affine(const Match& m, Build& build, std::span<const double> scale, std::span<const double> shift) {
  const Tensor& w = *m.tensor("w");
  std::vector<double> bias(scale.size(), 0);
  if (const Tensor* b = m.tensor("b")) bias = to_doubles(*b);
  for (size_t f = 0; f < scale.size(); ++f) bias[f] = bias[f] * scale[f] + shift[f];
  ir::Value* weight = std::all_of(scale.begin(), scale.end(), [](double s) { return s == 1; })
                          ? m.value("w")
                          : build.constant(scaled(w, scale));
  return build.like(*m.node("layer"), {m.value("x"), weight, build.constant(w.dtype(), {std::ssize(bias)}, bias)});
}

bool weights_have_arithmetic(const Match& m) { return has_arithmetic(m.tensor("w")->dtype()); }
constexpr Guard kArithmetic = {"the weights are real", weights_have_arithmetic};

struct Affine {
  std::vector<double> scale, shift;
};

// Batch norm in evaluation: y = (x − mean)/sqrt(var + eps)·gamma + beta.
Affine batch_norm_affine(const Match& m) {
  const std::vector<double> mean = to_doubles(*m.tensor("mean")), var = to_doubles(*m.tensor("var"));
  Affine out{std::vector<double>(mean.size(), 1), std::vector<double>(mean.size(), 0)};
  if (const Tensor* gamma = m.tensor("gamma")) out.scale = to_doubles(*gamma);
  if (const Tensor* beta = m.tensor("beta")) out.shift = to_doubles(*beta);
  const double eps = m.root()->real("eps");
  for (size_t c = 0; c < mean.size(); ++c) {
    out.scale[c] /= std::sqrt(var[c] + eps);
    out.shift[c] -= mean[c] * out.scale[c];
  }
  return out;
}

Pattern batch_norm_of(Pattern x) {
  return op("batch_norm",
            {std::move(x), optional_constant("gamma"), optional_constant("beta"), constant("mean"), constant("var")});
}

bool norm_follows_filters(const Match& m) {
  return filter_axis(*m.node("layer")) == 1 && has_arithmetic(m.root()->output()->dtype());
}

Rule batch_norm_into_layer() {
  return {.name = "batch_norm_into_layer",
          .equation = "norm(W x + b) = (s W) x + (s b + beta - s mean), s = gamma / sqrt(var + eps)",
          .pattern = batch_norm_of(convolution_or_linear()),
          .guards = {kArithmetic, {"the layer's filters lie along axis 1", norm_follows_filters}},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const Affine affine = batch_norm_affine(m);
            return fold_affine(m, build, affine.scale, affine.shift);
          }};
}

bool norm_has_arithmetic(const Match& m) { return has_arithmetic(m.root()->output()->dtype()); }

Rule batch_norm_alone() {
  return {.name = "batch_norm_as_scale_and_shift",
          .equation = "norm(x) = x s + (beta - s mean), s = gamma / sqrt(var + eps)",
          .pattern = batch_norm_of(any("x")),
          .guards = {{"the values are real", norm_has_arithmetic}},
          .exactness = "exact in real arithmetic; scale and shift are computed in double and rounded once",
          .rewrite = [](const Match& m, Build& build) {
            const Affine affine = batch_norm_affine(m);
            // Shape [C,1,…] lines up with axis 1.
            std::vector<int64_t> shape(static_cast<size_t>(std::max(1, m.value("x")->rank() - 1)), 1);
            shape[0] = static_cast<int64_t>(affine.scale.size());
            const DType dtype = m.value("x")->dtype();
            ir::Value* scaled = build.mul(m.value("x"), build.constant(dtype, shape, affine.scale));
            return build.add(scaled, build.constant(dtype, shape, affine.shift));
          }};
}

// The constant of an elementwise root as one value a filter.
std::optional<AxisConstant> filter_constant(const Match& m) {
  const ir::Node& layer = *m.node("layer");
  const int axis = filter_axis(layer);
  auto found = along_one_axis(*m.tensor("c"), layer.output()->shape(), axis);
  if (!found || found->axis != axis) return std::nullopt;
  return found;
}
bool constant_follows_filters(const Match& m) { return filter_constant(m).has_value(); }
constexpr Guard kFilterConstant = {"the constant varies along the layer's filters only", constant_follows_filters};

ir::Value* fold_scale(const Match& m, Build& build) {
  const std::vector<double> scale = filter_constant(m)->values, shift(scale.size(), 0);
  return fold_affine(m, build, scale, shift);
}
ir::Value* fold_shift(const Match& m, Build& build, double sign) {
  std::vector<double> shift = filter_constant(m)->values;
  for (double& value : shift) value *= sign;
  const std::vector<double> scale(shift.size(), 1);
  return fold_affine(m, build, scale, shift);
}

Rule scale_into_layer() {
  return {.name = "scale_into_layer",
          .equation = "(W x + b) c = (c W) x + c b",
          .pattern = op("mul", {convolution_or_linear(), constant("c")}),
          .guards = {kArithmetic, kFilterConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) { return fold_scale(m, build); }};
}

// The same behind a permute, along the axis that the filters come to lie on.
std::optional<AxisConstant> moved_constant(const Match& m) {
  const ir::Node &layer = *m.node("layer"), &permute = *m.node("permute");
  const int rank = layer.output()->rank();
  const std::vector<Dim>& perm = permute.integers("perm");
  const auto moved =
      std::ranges::find_if(perm, [&](const Dim& axis) { return (axis.value() + rank) % rank == filter_axis(layer); });
  const auto axis = static_cast<int>(moved - perm.begin());
  auto found = along_one_axis(*m.tensor("c"), permute.output()->shape(), axis);
  if (!found || found->axis != axis) return std::nullopt;
  return found;
}
bool constant_follows_moved(const Match& m) { return moved_constant(m).has_value(); }

Rule scale_into_moved() {
  return {.name = "scale_into_moved",
          .equation = "permute(W x + b) c = permute((c W) x + c b)",
          .pattern = op("mul", {exclusive(op("permute", {convolution_or_linear()}, "permute")), constant("c")}),
          .guards = {kArithmetic, {"the constant varies along the moved filters only", constant_follows_moved}},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> scale = moved_constant(m)->values, shift(scale.size(), 0);
            return build.op("permute", {fold_affine(m, build, scale, shift)}, m.node("permute")->attrs());
          }};
}

std::vector<double> reciprocals(std::vector<double> values) {
  for (double& value : values) value = 1 / value;
  return values;
}
Rule quotient_into_layer() {
  return {.name = "quotient_into_layer",
          .equation = "(W x + b) / c = (W / c) x + b / c",
          .pattern = op("div", {convolution_or_linear(), constant("c")}),
          .guards = {kArithmetic, kFilterConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> scale = reciprocals(filter_constant(m)->values), shift(scale.size(), 0);
            return fold_affine(m, build, scale, shift);
          }};
}
Rule shift_into_layer() {
  return {.name = "shift_into_layer",
          .equation = "(W x + b) + c = W x + (b + c)",
          .pattern = op("add", {convolution_or_linear(), constant("c")}),
          .guards = {kArithmetic, kFilterConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) { return fold_shift(m, build, 1); }};
}
Rule difference_into_layer() {
  return {.name = "difference_into_layer",
          .equation = "(W x + b) - c = W x + (b - c)",
          .pattern = op("sub", {convolution_or_linear(), constant("c")}),
          .guards = {kArithmetic, kFilterConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) { return fold_shift(m, build, -1); }};
}

// The weight of a transposed convolution is [channels, filters of a group, ...]: its filters lie along axis 1, those of
// a group side by side.
ir::Value* scaled_transposed(const Match& m, Build& build, const std::vector<double>& scale) {
  const ir::Node& layer = *m.node("layer");
  const Tensor& w = *m.tensor("w");
  std::vector<double> weight = to_doubles(w);
  const auto channels = static_cast<size_t>(w.shape()[0]), filters = static_cast<size_t>(w.shape()[1]);
  const size_t taps = weight.size() / std::max<size_t>(channels * filters, 1);
  for (size_t k = 0; k < weight.size(); ++k) {
    const size_t group = k / (taps * filters) * (scale.size() / filters) / channels;
    weight[k] *= scale[group * filters + k / taps % filters];
  }
  ir::Value* bias = nullptr;
  if (const Tensor* b = m.tensor("b")) {
    std::vector<double> values = to_doubles(*b);
    for (size_t f = 0; f < values.size(); ++f) values[f] *= scale[f];
    bias = build.constant(b->dtype(), b->shape(), values);
  }
  return build.like(layer, {m.value("x"), build.constant(w.dtype(), w.shape(), weight), bias});
}

Rule scale_into_transposed() {
  return {
      .name = "scale_into_transposed",
      .equation = "(W x + b) c = (c W) x + c b, a transposed convolution",
      .pattern = op("mul", {layer({"conv_transpose2d"}), constant("c")}),
      .guards = {kArithmetic, kFilterConstant},
      .exactness = kExact,
      .rewrite = [](const Match& m, Build& build) { return scaled_transposed(m, build, filter_constant(m)->values); }};
}
Rule shift_into_transposed() {
  return {.name = "shift_into_transposed",
          .equation = "(W x + b) + c = W x + (b + c), a transposed convolution",
          .pattern = op("add", {layer({"conv_transpose2d"}), constant("c")}),
          .guards = {kArithmetic, kFilterConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            std::vector<double> bias = filter_constant(m)->values;
            if (const Tensor* b = m.tensor("b")) {
              const std::vector<double> given = to_doubles(*b);
              for (size_t f = 0; f < bias.size(); ++f) bias[f] += given[f];
            }
            const auto filters = static_cast<int64_t>(bias.size());
            return build.like(*m.node("layer"),
                              {m.value("x"), m.value("w"), build.constant(m.tensor("w")->dtype(), {filters}, bias)});
          }};
}

// A 1x1 depthwise convolution is a scale and a shift a channel.
bool is_pointwise_depthwise(const ir::Node& conv) {
  const Shape& w = conv.input(1)->shape();
  return conv.integer("groups") == w[0] && elements(w) == w[0] && conv.input(0)->shape()[1] == w[0] &&
         all_are(conv, "stride", 1) && all_are(conv, "padding", 0);
}
bool root_is_pointwise_depthwise(const Match& m) { return is_pointwise_depthwise(*m.root()); }

Rule depthwise_into_layer() {
  return {.name = "depthwise_into_layer",
          .equation = "d (W x + b) + e = (d W) x + (d b + e), a 1x1 depthwise convolution with weights d and bias e",
          .pattern = op("conv2d", {layer({"conv2d"}), constant("d"), optional_constant("e")}),
          .guards = {kArithmetic, {"the second is 1x1 depthwise, stride 1, no padding", root_is_pointwise_depthwise}},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> scale = to_doubles(*m.tensor("d"));
            std::vector<double> shift(scale.size(), 0);
            if (const Tensor* e = m.tensor("e")) shift = to_doubles(*e);
            return fold_affine(m, build, scale, shift);
          }};
}

bool has_padding(const ir::Node& conv) {
  const std::vector<Dim>& padding = conv.integers("padding");
  return std::any_of(padding.begin(), padding.end(), [](const Dim& dim) { return dim != Dim(0); });
}

// conv(s x + t) = (W s) x + (b + sum over c,r,q of W t): exact only where no padding shows zeros instead of t.
ir::Value* fold_input_affine(const Match& m, Build& build, std::span<const double> scale,
                             std::span<const double> shift) {
  const ir::Node& conv = *m.root();
  const Tensor& w = *m.tensor("w");
  const auto filters = static_cast<size_t>(w.shape()[0]), per_group = static_cast<size_t>(w.shape()[1]);
  const size_t groups = scale.size() / per_group;
  std::vector<double> weight = to_doubles(w), bias(filters, 0);
  if (const Tensor* b = m.tensor("b")) bias = to_doubles(*b);
  const size_t area = weight.size() / (filters * per_group);
  for (size_t f = 0; f < filters; ++f) {
    for (size_t c = 0; c < per_group; ++c) {
      const size_t channel = f / (filters / groups) * per_group + c;
      for (size_t k = 0; k < area; ++k) {
        double& value = weight[(f * per_group + c) * area + k];
        bias[f] += value * shift[channel];
        value *= scale[channel];
      }
    }
  }
  const bool shifts = std::any_of(shift.begin(), shift.end(), [](double s) { return s != 0; });
  ir::Value* folded = build.constant(w.dtype(), w.shape(), weight);
  ir::Value* offset = shifts ? build.constant(w.dtype(), {w.shape()[0]}, bias) : m.value("b");
  return build.like(conv, {m.value("x"), folded, offset});
}

// The constant before a convolution, one value an input channel.
std::optional<AxisConstant> channel_constant(const Match& m) {
  auto found = along_one_axis(*m.tensor("c"), m.value("x")->shape());
  if (!found || found->axis != 1 || m.value("x")->shape() != m.root()->input(0)->shape()) return std::nullopt;
  return found;
}
Pattern convolution_of(Pattern x) {
  return op("conv2d", {exclusive(std::move(x)), constant("w"), optional_constant("b")});
}
constexpr Guard kChannelConstant = {"the constant varies along the channels only",
                                    [](const Match& m) { return channel_constant(m).has_value(); }};
constexpr Guard kNoPadding = {"the convolution has no padding", [](const Match& m) { return !has_padding(*m.root()); }};

Rule scale_into_next() {
  return {.name = "scale_into_next",
          .equation = "W (c x) + b = (W c) x + b",
          .pattern = convolution_of(op("mul", {any("x"), constant("c")})),
          .guards = {kArithmetic, kChannelConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> scale = channel_constant(m)->values, shift(scale.size(), 0);
            return fold_input_affine(m, build, scale, shift);
          }};
}
Rule quotient_into_next() {
  return {.name = "quotient_into_next",
          .equation = "W (x / c) + b = (W / c) x + b",
          .pattern = convolution_of(op("div", {any("x"), constant("c")})),
          .guards = {kArithmetic, kChannelConstant},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> scale = reciprocals(channel_constant(m)->values), shift(scale.size(), 0);
            return fold_input_affine(m, build, scale, shift);
          }};
}
Rule shift_into_next() {
  return {.name = "shift_into_next",
          .equation = "W (x + c) + b = W x + (b + W c)",
          .pattern = convolution_of(op("add", {any("x"), constant("c")})),
          .guards = {kArithmetic, kChannelConstant, kNoPadding},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> shift = channel_constant(m)->values, scale(shift.size(), 1);
            return fold_input_affine(m, build, scale, shift);
          }};
}

bool inner_is_pointwise_depthwise(const Match& m) { return is_pointwise_depthwise(*m.node("inner")); }
bool nothing_lost_at_the_border(const Match& m) { return !m.tensor("e") || !has_padding(*m.root()); }

Rule depthwise_into_next() {
  return {.name = "depthwise_into_next",
          .equation = "W (d x + e) + b = (W d) x + (b + W e), d and e a 1x1 depthwise convolution",
          .pattern = convolution_of(op("conv2d", {any("x"), constant("d"), optional_constant("e")}, "inner")),
          .guards = {kArithmetic,
                     {"the first is 1x1 depthwise, stride 1, no padding", inner_is_pointwise_depthwise},
                     {"the first has no bias, or the second no padding", nothing_lost_at_the_border}},
          .exactness = kExact,
          .rewrite = [](const Match& m, Build& build) {
            const std::vector<double> scale = to_doubles(*m.tensor("d"));
            std::vector<double> shift(scale.size(), 0);
            if (const Tensor* e = m.tensor("e")) shift = to_doubles(*e);
            return fold_input_affine(m, build, scale, shift);
          }};
}

bool weight_is_matrix(const Match& m) { return m.tensor("w")->rank() == 2; }

Rule matmul_as_linear() {
  return {.name = "matmul_as_linear",
          .equation = "x w = linear(x, transpose of w)",
          .pattern = op("matmul", {any("x"), constant("w")}),
          .guards = {kArithmetic, {"w is a matrix", weight_is_matrix}},
          .exactness = "bit for bit, up to the order of sums",
          .rewrite = [](const Match& m, Build& build) {
            const Tensor& w = *m.tensor("w");
            const auto rows = static_cast<size_t>(w.shape()[0]), columns = static_cast<size_t>(w.shape()[1]);
            const std::vector<double> values = to_doubles(w);
            std::vector<double> turned(values.size());
            for (size_t i = 0; i < rows; ++i) {
              for (size_t j = 0; j < columns; ++j) turned[j * rows + i] = values[i * columns + j];
            }
            return build.op("linear", {m.value("x"), build.constant(w.dtype(), {w.shape()[1], w.shape()[0]}, turned)});
          }};
}

}  // namespace

const RuleSet& weights() {
  static const RuleSet set = {
      "weights",
      "What follows or precedes a convolution or linear layer channel by channel goes into its weights.",
      {matmul_as_linear(), batch_norm_into_layer(), batch_norm_alone(), scale_into_layer(), scale_into_moved(),
       quotient_into_layer(), shift_into_layer(), difference_into_layer(), depthwise_into_layer(),
       scale_into_transposed(), shift_into_transposed(), scale_into_next(), quotient_into_next(), shift_into_next(),
       depthwise_into_next()}};
  return set;
}

}  // namespace hetnn::passes::canonical
