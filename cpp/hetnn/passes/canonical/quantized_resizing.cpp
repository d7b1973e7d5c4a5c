// Images between conversions that grow by whole factors: sums of integers with weights of bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "hetnn/ops/resize/upsample.h"
#include "hetnn/passes/canonical/integers_of.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/canonical/steps_apart.h"

namespace hetnn::passes::canonical {
namespace {

// An axis that grows by a whole factor: a pixel's shares in the result, of so many, one behind the other. By centres
// both neighbours of an edge are one pixel; by corners the first and the last pixel of both images are the same.
struct Axis {
  int64_t factor = 1;
  int64_t parts = 1;
  bool by_corners = false;
  std::vector<int64_t> shares = {1};

  int64_t largest() const { return *std::ranges::max_element(shares); }
  // What is cut before and behind of a transposed convolution by the shares.
  int64_t padding() const { return factor == 1 ? 0 : by_corners ? factor - 1 : factor * 3 / 2; }
};

Axis axis_of(int64_t factor, bool by_corners) {
  if (factor == 1) return {};
  // By centres an even factor has them halfway between the shares of an odd one.
  const bool halfway = !by_corners && factor % 2 == 0;
  Axis out{factor, halfway ? 2 * factor : factor, by_corners, {}};
  for (int64_t k = 1; k < out.parts; k += halfway ? 2 : 1) out.shares.push_back(k);
  if (!halfway) out.shares.push_back(factor);
  for (int64_t k = out.parts - 1; k > 0; k -= halfway ? 2 : 1) out.shares.push_back(k);
  return out;
}

// The axis of a node that resizes; none where the pixels of the result do not lie as shares say.
std::optional<Axis> axis_of(const ir::Node& node, size_t which, int64_t in, int64_t out) {
  if (in == out) return Axis{};
  const bool by_corners = node.flag("align_corners");
  const int64_t from = by_corners ? in - 1 : in, to = by_corners ? out - 1 : out;
  if (from <= 0 || to % from != 0) return std::nullopt;
  const int64_t factor = to / from;
  const std::vector<ops::LinearTap> taps = ops::linear_taps(in, out, ops::scale_of(node.call(), which), by_corners);
  for (int64_t k = 0; k < out; ++k) {
    const double inside = static_cast<double>(k % factor) / static_cast<double>(factor);
    const double at = by_corners ? inside : inside + 0.5 / static_cast<double>(factor) - 0.5;
    const int64_t before = k / factor + (at < 0 ? -1 : 0);
    const int64_t low = std::clamp<int64_t>(before, 0, in - 1), high = std::clamp<int64_t>(before + 1, 0, in - 1);
    const double share = low == high ? 0 : at < 0 ? at + 1 : at;
    const ops::LinearTap& tap = taps[static_cast<size_t>(k)];
    // Where a pixel of the result lies on one of the image, the other has no share, whichever it is.
    const auto place = static_cast<double>(tap.low) + (tap.high > tap.low ? static_cast<double>(tap.weight) : 0.0);
    if (std::abs(place - (static_cast<double>(low) + share)) > 1e-5) return std::nullopt;
  }
  return axis_of(factor, by_corners);
}

struct Growth {
  ir::Value* x = nullptr;  // the integers
  std::array<Axis, 2> axes;

  double parts() const { return static_cast<double>(axes[0].parts * axes[1].parts); }
};

// What the node resizes, and by how much; no x where it has no such form.
Growth growth_of(const ir::Value& y) {
  const ir::Node* node = y.producer();
  if (!node || node->op().name != "upsample_bilinear2d" || y.uses().size() != 1) return {};
  ir::Value* x = integers_of(node->input(0));
  if (!x || x->dtype() != DType::i8 || !quant_of(*x)->per_tensor() || !x->shape()[1].is_static()) return {};
  Growth out;
  for (size_t k = 0; k < 2; ++k) {
    const Dim &in = x->shape()[2 + k], &size = y.shape()[2 + k];
    if (!in.is_static() || !size.is_static()) return {};
    const std::optional<Axis> axis = axis_of(*node, k, in.value(), size.value());
    if (!axis || axis->factor > std::numeric_limits<int8_t>::max()) return {};
    out.axes[k] = *axis;
  }
  const int64_t largest = out.axes[0].largest() * out.axes[1].largest();
  if (out.axes[0].factor * out.axes[1].factor == 1 || largest > std::numeric_limits<int8_t>::max()) return {};
  out.x = x;
  return out;
}

// With its first and its last row or column twice.
ir::Value* with_edges(Build& build, ir::Value* x, int axis) {
  const int64_t size = x->shape()[static_cast<size_t>(axis)].value();
  const auto at = [&](int64_t k) {
    return build.op("slice", {x}, {{"axis", Dim(axis)}, {"start", Dim(k)}, {"end", Dim(k + 1)}, {"inside", true}});
  };
  ops::Attrs attrs = ops::quant_attrs(*quant_of(*x));
  attrs.emplace("axis", Dim(axis));
  return build.op("concat", {at(0), x, at(size - 1)}, std::move(attrs));
}

}  // namespace

Rule bilinear_of_integers() {
  return {
      .name = "bilinear_of_integers",
      .equation =
          "quantize(upsample_bilinear2d(dequantize(x))) = conv_transpose2d(x with its edges twice, the "
          "shares of each pixel) on the integers",
      .pattern = op("quantize", {any("y")}),
      .guards =
          {{"nothing else reads y, an image that grows from i8 of one scale and fixed size, by centres or by corners, "
            "by whole factors with shares that are bytes",
            [](const Match& m) {
              return m.root()->output()->dtype() == DType::i8 && growth_of(*m.value("y")).x != nullptr;
            }}},
      .exactness = "one rounding in both; that of the integers halfway between two may differ",
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        if (build.graph().is_output(m.value("y"))) return nullptr;
        const Growth growth = growth_of(*m.value("y"));
        ir::Value* x = growth.x;
        std::vector<Dim> padding, stride;
        for (size_t k = 0; k < 2; ++k) {
          const Axis& axis = growth.axes[k];
          if (axis.factor > 1 && !axis.by_corners) x = with_edges(build, x, 2 + static_cast<int>(k));
          padding.emplace_back(axis.padding());
          stride.emplace_back(axis.factor);
        }
        const std::vector<int64_t>&rows = growth.axes[0].shares, &columns = growth.axes[1].shares;
        const int64_t channels = x->shape()[1].value();
        std::vector<int8_t> weights;
        for (int64_t c = 0; c < channels; ++c) {
          for (const int64_t row : rows) {
            for (const int64_t column : columns) weights.push_back(static_cast<int8_t>(row * column));
          }
        }
        ir::Value* weight = build.constant(
            Tensor::of({channels, 1, static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size())}, weights),
            ops::Quant{{1 / growth.parts()}});
        ops::Attrs attrs = ops::quant_attrs(*quant_of(*m.root()->output()));
        attrs.insert({{"stride", stride}, {"padding", padding}, {"groups", Dim(channels)}});
        return build.op("conv_transpose2d", {x, weight}, std::move(attrs));
      },
      .quantized = true,
      .steps_apart = [](const Match& m) { return steps_apart_of_quotients(growth_of(*m.value("y")).parts()); }};
}

}  // namespace hetnn::passes::canonical
