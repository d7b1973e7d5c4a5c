// Images between conversions that grow by powers of 2: sums of integers with weights of bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "hetnn/ops/resize/upsample.h"
#include "hetnn/passes/canonical/integers_of.h"
#include "hetnn/passes/canonical/rules.h"

namespace hetnn::passes::canonical {
namespace {

// Of a pixel's share in the result there are so many along an axis that grows by a factor: 1, 3, ..., 3, 1.
int64_t parts_of(int64_t factor) { return factor == 1 ? 1 : 2 * factor; }

// Whether each pixel of the result lies where the shares say; at the edges both neighbours are one.
bool lies_evenly(const ir::Node& node, size_t axis, int64_t in, int64_t out) {
  if (in == 0 || out % in != 0) return false;
  const int64_t factor = out / in;
  if (factor == 1) return true;
  const std::vector<ops::LinearTap> taps = ops::linear_taps(in, out, ops::scale_of(node.call(), axis), false);
  for (int64_t k = 0; k < out; ++k) {
    const double at = (static_cast<double>(k % factor) + 0.5) / static_cast<double>(factor) - 0.5;
    const int64_t before = k / factor + (at < 0 ? -1 : 0);
    const int64_t low = std::max<int64_t>(before, 0), high = std::min(before + 1, in - 1);
    const ops::LinearTap& tap = taps[static_cast<size_t>(k)];
    const bool edge = low == high && tap.low == low && (tap.high == high || tap.weight == 0);
    if (!edge && (tap.low != low || tap.high != high || tap.weight != static_cast<float>(at < 0 ? at + 1 : at)))
      return false;
  }
  return true;
}

struct Growth {
  ir::Value* x = nullptr;  // the integers
  std::array<int64_t, 2> factors{};
};

// What the node resizes, and by how much; no x where it has no such form.
Growth growth_of(const ir::Value& y) {
  const ir::Node* node = y.producer();
  if (!node || node->op().name != "upsample_bilinear2d" || node->flag("align_corners") || y.uses().size() != 1)
    return {};
  ir::Value* x = integers_of(node->input(0));
  if (!x || x->dtype() != DType::i8 || !quant_of(*x)->per_tensor() || !x->shape()[1].is_static()) return {};
  Growth out;
  int64_t largest = 1;
  for (size_t k = 0; k < 2; ++k) {
    const Dim &in = x->shape()[2 + k], &size = y.shape()[2 + k];
    if (!in.is_static() || !size.is_static() || !lies_evenly(*node, k, in.value(), size.value())) return {};
    out.factors[k] = size.value() / in.value();
    if ((out.factors[k] & (out.factors[k] - 1)) != 0) return {};
    largest *= std::max<int64_t>(parts_of(out.factors[k]) - 1, 1);
  }
  if (out.factors == std::array<int64_t, 2>{1, 1} || largest > std::numeric_limits<int8_t>::max()) return {};
  out.x = x;
  return out;
}

std::vector<int8_t> shares_of(int64_t factor) {
  if (factor == 1) return {1};
  std::vector<int8_t> out;
  for (int64_t k = 1; k < 2 * factor; k += 2) out.push_back(static_cast<int8_t>(k));
  for (int64_t k = 2 * factor - 1; k > 0; k -= 2) out.push_back(static_cast<int8_t>(k));
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
      .guards = {{"nothing else reads y, an image without align_corners that grows from i8 of one scale and fixed size "
                  "by powers of 2, by shares that are bytes",
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
          const int64_t factor = growth.factors[k];
          if (factor > 1) x = with_edges(build, x, 2 + static_cast<int>(k));
          padding.emplace_back(factor == 1 ? 0 : factor * 3 / 2);
          stride.emplace_back(factor);
        }
        const std::vector<int8_t> rows = shares_of(growth.factors[0]), columns = shares_of(growth.factors[1]);
        const int64_t channels = x->shape()[1].value();
        std::vector<int8_t> weights;
        for (int64_t c = 0; c < channels; ++c) {
          for (const int8_t row : rows) {
            for (const int8_t column : columns) weights.push_back(static_cast<int8_t>(row * column));
          }
        }
        const auto parts = static_cast<double>(parts_of(growth.factors[0]) * parts_of(growth.factors[1]));
        ir::Value* weight = build.constant(
            Tensor::of({channels, 1, static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size())}, weights),
            ops::Quant{{1 / parts}});
        ops::Attrs attrs = ops::quant_attrs(*quant_of(*m.root()->output()));
        attrs.insert({{"stride", stride}, {"padding", padding}, {"groups", Dim(channels)}});
        return build.op("conv_transpose2d", {x, weight}, std::move(attrs));
      },
      .quantized = true};
}

}  // namespace hetnn::passes::canonical
