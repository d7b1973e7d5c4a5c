// Diagonal maps as 1×1 convolutions.
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

// x as [before, axis, after, 1], or as it is when it already has four dims with the axis second.
ir::Value* as_image(Build& build, ir::Value* x, int axis) {
  const Shape& shape = x->shape();
  if (shape.size() == 4 && axis == 1) return x;
  return build.reshape(x, {elements(shape, 0, axis), shape[static_cast<size_t>(axis)], elements(shape, axis + 1), 1});
}

}  // namespace

ir::Value* depthwise(Build& build, ir::Value* x, int axis, std::span<const double> scale,
                     std::span<const double> shift) {
  const auto channels = static_cast<int64_t>(scale.size());
  ir::Value* image = as_image(build, x, axis);
  ir::Value* weight = build.constant(x->dtype(), {channels, 1, 1, 1}, scale);
  ir::Value* bias = shift.empty() ? nullptr : build.constant(x->dtype(), {channels}, shift);
  return build.reshape(build.op("conv2d", {image, weight, bias}, {{"groups", Dim(channels)}}), x->shape());
}

ir::Value* quantized_depthwise(Build& build, ir::Value* x, int axis, const std::vector<int8_t>& weights,
                               std::vector<double> scales, const ops::Quant& result) {
  const auto channels = static_cast<int64_t>(weights.size());
  ir::Value* weight = build.constant(Tensor::of({channels, 1, 1, 1}, weights), ops::Quant{std::move(scales)});
  ops::Attrs attrs = ops::quant_attrs(result);
  attrs.emplace("groups", Dim(channels));
  return build.reshape(build.op("conv2d", {as_image(build, x, axis), weight}, std::move(attrs)), x->shape());
}

ir::Value* dense_diagonal(Build& build, ir::Value* x, int axis, std::span<const double> scale) {
  const size_t channels = scale.size();
  std::vector<double> matrix(channels * channels, 0);
  for (size_t c = 0; c < channels; ++c) matrix[c * channels + c] = scale[c];
  const auto count = static_cast<int64_t>(channels);
  ir::Value* weight = build.constant(x->dtype(), {count, count, 1, 1}, matrix);
  return build.reshape(build.op("conv2d", {as_image(build, x, axis), weight}), x->shape());
}

int channel_axis(const ir::Value& x) { return x.rank() >= 2 ? 1 : 0; }

size_t channel_count(const ir::Value& x) {
  return static_cast<size_t>(x.shape()[static_cast<size_t>(channel_axis(x))].value());
}

bool channels_are_fixed(const Match& m) {
  const ir::Value& x = *m.root()->input(0);
  if (!has_arithmetic(x.dtype()) || x.rank() == 0) return false;
  const Dim& channels = x.shape()[static_cast<size_t>(channel_axis(x))];
  return channels.is_static() && channels.value() > 0 && channels.value() <= kMostChannels;
}

const std::vector<const RuleSet*>& rule_sets() {
  static const std::vector<const RuleSet*> sets = {&prelu(),   &piecewise(), &arithmetic(), &convolutions(),
                                                   &strides(), &pooling(),   &shapes(),     &quantized()};
  return sets;
}

}  // namespace hetnn::passes::legal
