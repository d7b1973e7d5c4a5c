// Where each weight of a transposed convolution stands among the filters of its phases.
#include "hetnn/passes/transposed.h"

#include <algorithm>
#include <cstring>

#include "hetnn/base/sizes.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/ops/window.h"
#include "hetnn/passes/apply_rules.h"

namespace hetnn::passes {
namespace {

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The elements of a tensor at these places, zeros at those below 0.
Tensor taken(const Tensor& from, std::vector<int64_t> shape, const std::vector<int64_t>& places) {
  std::byte* to = nullptr;
  Tensor out = Tensor::zeros(from.dtype(), std::move(shape), &to);
  const auto width = static_cast<size_t>(dtype_bytes(from.dtype()));
  for (size_t k = 0; k < places.size(); ++k) {
    if (places[k] >= 0) std::memcpy(to + k * width, from.data() + static_cast<size_t>(places[k]) * width, width);
  }
  return out;
}

// Scales of filters in their new order, along the first axis; `of` says which filter each was.
std::optional<ops::Quant> reordered(const std::optional<ops::Quant>& quant, const std::vector<int64_t>& of) {
  if (!quant || quant->per_tensor()) return quant;
  ops::Quant out = *quant;
  out.axis = 0;
  out.scales.clear();
  for (const int64_t filter : of) out.scales.push_back(quant->scale(static_cast<size_t>(filter)));
  out.zero_points.clear();
  return out;
}

// Of operands that have one: no zero point, and scales of filters alone.
bool fits(const ir::Value* value, int axis) {
  const auto& quant = value->type().quant;
  return !quant || (!quant->has_zero_point() && (quant->per_tensor() || quant->axis == axis));
}

}  // namespace

ir::Value* part_of_image(Build& build, ir::Value* x, int axis, const Dim& begin, const Dim& end) {
  if (begin == Dim(0) && end == x->shape()[static_cast<size_t>(axis)]) return x;
  return build.op("slice", {x}, {{"axis", Dim(axis)}, {"start", begin}, {"end", end}, {"inside", true}});
}

ir::Value* channels_to_pixels(Build& build, ir::Value* x, int64_t groups, std::array<int64_t, 2> stride) {
  const Shape& shape = x->shape();
  const int64_t filters = shape[1].value() / groups / stride[0] / stride[1];
  const Dim batch = shape[0] * groups, height = shape[2], width = shape[3];
  ir::Value* y = x;
  if (stride[1] > 1) {
    y = build.reshape(y, {batch, stride[1], height * width * (stride[0] * filters)});
    y = build.op("permute", {y}, {{"perm", std::vector<Dim>{0, 2, 1}}});
  }
  if (stride[0] > 1) {
    y = build.reshape(y, {batch, stride[0], height * filters, width * stride[1]});
    y = build.op("permute", {y}, {{"perm", std::vector<Dim>{0, 2, 1, 3}}});
  }
  return build.reshape(y, {shape[0], groups * filters, height * stride[0], width * stride[1]});
}

ir::Value* as_phases(const ir::Node& transposed, Build& build) {
  const Tensor *w = transposed.constant_input(1), *b = transposed.constant_input(2);
  const bool biased = transposed.inputs().size() > 2 && transposed.input(2);
  if (!w || (biased && !b) || !fits(transposed.input(1), 1) || (biased && !fits(transposed.input(2), 0)))
    return nullptr;
  const ops::Window at = ops::window_of(transposed.call());
  const std::vector<int64_t> extra = ops::per_axis(transposed.call(), "output_padding", 2);
  const int64_t groups = ops::fixed_integer(transposed.call(), "groups");
  const int64_t filters = w->shape()[1], channels = w->shape()[0] / groups;
  const int64_t rows = at[0].stride, columns = at[1].stride, phases = rows * columns;
  std::array<int64_t, 2> taps{};
  for (size_t k = 0; k < 2; ++k)
    taps[k] = ceil_of(at[k].reach() + std::max<int64_t>(extra[k] - at[k].after, 0), at[k].stride);
  const std::vector<int64_t> shape = {groups * phases * filters, channels, taps[0], taps[1]};
  std::vector<int64_t> places(static_cast<size_t>(checked_product(shape, "weights")), -1), of_filter, of_group_filter;
  for (int64_t m = 0; m < shape[0]; ++m) {
    of_filter.push_back(m % filters);
    of_group_filter.push_back(m / (phases * filters) * filters + m % filters);
  }
  const int64_t window = at[0].kernel * at[1].kernel;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t f = 0; f < filters; ++f) {
      for (int64_t k = 0; k < window; ++k) {
        const int64_t row = k / at[1].kernel * at[0].dilation, column = k % at[1].kernel * at[1].dilation;
        const int64_t to = ((g * columns + column % columns) * rows + row % rows) * filters + f;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t tap = (taps[0] - 1 - row / rows) * taps[1] + taps[1] - 1 - column / columns;
          places[static_cast<size_t>((to * channels + c) * taps[0] * taps[1] + tap)] =
              ((g * channels + c) * filters + f) * window + k;
        }
      }
    }
  }
  ir::Value* weight = build.constant(taken(*w, shape, places), reordered(transposed.input(1)->type().quant, of_filter));
  ir::Value* bias = nullptr;
  if (biased)
    bias = build.constant(taken(*b, {shape[0]}, of_group_filter),
                          reordered(transposed.input(2)->type().quant, of_group_filter));
  ops::Attrs attrs = {{"padding", std::vector<Dim>{taps[0] - 1, taps[1] - 1}}, {"groups", Dim(groups)}};
  if (const auto& quant = transposed.output()->type().quant) attrs.merge(ops::quant_attrs(*quant));
  ir::Value* y = build.op("conv2d", {transposed.input(0), weight, bias}, std::move(attrs));
  y = channels_to_pixels(build, y, groups, {rows, columns});
  for (size_t k = 0; k < 2; ++k) {
    const Dim first = at[k].before;
    y = part_of_image(build, y, 2 + static_cast<int>(k), first, transposed.output()->shape()[2 + k] + first);
  }
  return y;
}

void transposed_to_dense(ir::Graph& graph) {
  static const RuleSet set = {"transposed",
                              "Transposed convolutions become dense ones.",
                              {{.name = "transposed_to_dense",
                                .equation = "conv_transpose2d(x, w) = pixels of conv2d(x, taps of w for each phase)",
                                .pattern = op("conv_transpose2d", {any("x"), constant("w"), optional_constant("b")}),
                                .guards = {},
                                .exactness = "the order of sums may differ, and zeros are added",
                                .rewrite = [](const Match& m, Build& build) { return as_phases(*m.root(), build); }}}};
  apply_rules(graph, {&set});
}

}  // namespace hetnn::passes
