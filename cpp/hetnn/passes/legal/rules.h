// The rule sets of legalization. A rule here looks at one node and its constants only, so that the search can try it
// on the node alone; its right side need not be legal yet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hetnn/passes/numbers.h"
#include "hetnn/passes/rule.h"

namespace hetnn::passes::legal {

/// PReLU in its forms, and what is a PReLU in disguise.
const RuleSet& prelu();
/// Other piecewise linear functions from relu, and smooth ones from their factors.
const RuleSet& piecewise();
/// Elementwise arithmetic with constants as 1×1 depthwise convolutions; differences as sums.
const RuleSet& arithmetic();
/// Convolutions and linear layers of one kind by those of another.
const RuleSet& convolutions();
/// Transposed and strided convolutions as convolutions of stride 1.
const RuleSet& strides();
/// Pooling and means by each other and by convolutions.
const RuleSet& pooling();

/// Products, rows and repeated operands under shapes of fewer axes.
const RuleSet& shapes();

/// What holds for i8 alone: other scales, branches at scales of their own, tables.
const RuleSet& quantized();

/// All of the above, in the order in which ties are settled.
const std::vector<const RuleSet*>& rule_sets();

/// Two neighbours in one, after everything is legal: taken where it is cheaper.
const RuleSet& merging();

/// y = x·scale + shift along `axis` (an empty shift is none) as a 1×1 depthwise convolution over x seen as
/// [elements before, axis, elements after, 1]; an x of shape [N,C,H,W] with axis 1 as it is.
ir::Value* depthwise(Build& build, ir::Value* x, int axis, std::span<const double> scale,
                     std::span<const double> shift = {});
/// y = x·weight along `axis` of a quantized x, at the scale `result`: i8 weights with one scale or one for each. The
/// only rounding is that of the result, and saturation bounds it.
ir::Value* quantized_depthwise(Build& build, ir::Value* x, int axis, const std::vector<int8_t>& weights,
                               std::vector<double> scales, const ops::Quant& result);
/// y = x·scale along `axis` as a full 1×1 convolution whose kernels form a diagonal matrix.
ir::Value* dense_diagonal(Build& build, ir::Value* x, int axis, std::span<const double> scale);

/// Windows of a pool of means that all divide by one number.
struct MeanWindow {
  std::vector<Dim> kernel, stride, padding;
  int64_t divisor = 1;
};
/// None for a pool whose windows divide by different numbers, or whose sizes are open where they decide its windows.
std::optional<MeanWindow> mean_window_of(const ir::Node& pool);

/// The root's first input x has real values, rank 1 or more and a fixed size along axis 1 (axis 0 at rank 1), of at
/// most kMostChannels.
bool channels_are_fixed(const Match& m);
inline constexpr Guard kChannelsFixed = {"x is real and its number of channels is fixed, 2^20 at most",
                                         channels_are_fixed};
/// Axis of the channels of x, and how many there are.
int channel_axis(const ir::Value& x);
size_t channel_count(const ir::Value& x);

}  // namespace hetnn::passes::legal
