// Two convolutions over one pass of the input.
#include <algorithm>

#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

bool weights_have_arithmetic(const Match& m) { return has_arithmetic(m.tensor("w")->dtype()); }

bool root_is_pointwise_depthwise(const Match& m) {
  const ir::Node& conv = *m.root();
  const Shape& w = conv.input(1)->shape();
  return conv.integer("groups") == w[0] && elements(w) == w[0] && all_are(conv, "stride", 1) &&
         all_are(conv, "padding", 0);
}

bool is_ungrouped(const Match& m) { return m.node("layer")->integer("groups") == Dim(1); }
bool has_other_readers(const Match& m) { return m.value("layer")->uses().size() > 1; }

// PReLU's form 5: the branch's kernels d·W become further output channels of the producer, so the branch costs no pass
// over the feature map of its own.
Rule depthwise_into_producer() {
  return {.name = "branch_into_producer",
          .equation = "(y, d y + e) with y = W x + b: one convolution with filters [W; d W] and biases [b; d b + e]",
          .pattern = op("conv2d", {op("conv2d", {any("x"), constant("w"), optional_constant("b")}, "layer"),
                                   constant("d"), optional_constant("e")}),
          .guards = {{"the weights are real", weights_have_arithmetic},
                     {"the second is 1x1 depthwise, stride 1, no padding", root_is_pointwise_depthwise},
                     {"the first is not grouped", is_ungrouped},
                     {"the first has other readers", has_other_readers}},
          .exactness = "exact in real arithmetic; the weights are computed in double and rounded once",
          .rewrite = [](const Match& m, Build& build) {
            const Tensor& w = *m.tensor("w");
            const std::vector<double> scale = to_doubles(*m.tensor("d"));
            const size_t filters = scale.size();
            std::vector<double> bias(filters, 0), shift(filters, 0);
            if (const Tensor* b = m.tensor("b")) bias = to_doubles(*b);
            if (const Tensor* e = m.tensor("e")) shift = to_doubles(*e);
            bias.resize(2 * filters);
            for (size_t f = 0; f < filters; ++f) bias[filters + f] = bias[f] * scale[f] + shift[f];
            const ir::Node& layer = *m.node("layer");
            build.insert_after(&layer);
            const auto half = static_cast<int64_t>(filters);
            ir::Value* both = build.like(layer, {m.value("x"), build.constant(with_scaled(w, scale)),
                                                 build.constant(w.dtype(), {2 * half}, bias)});
            const auto part = [&](int64_t first) {
              return build.op("slice", {both}, {{"axis", Dim(1)}, {"start", Dim(first)}, {"end", Dim(first + half)}});
            };
            build.also_replace(m.value("layer"), part(0));
            return part(half);
          }};
}

bool has_one_scale(const Match& m) {
  const auto& quant = m.value("x")->type().quant;
  return !quant || quant->per_tensor();
}
constexpr Guard kOneScale = {"quantized values have one scale", has_one_scale};

Rule function_between_reshapes() {
  return {.name = "function_between_reshapes",
          .equation = "reshape(f(reshape(x))) = reshape(f(x)) where f is lookup, relu or clamp",
          .pattern = op("reshape",
                        {exclusive(one_of({"lookup", "relu", "clamp"}, {exclusive(op("reshape", {any("x")}))}, "f"))}),
          .guards = {kOneScale},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                return build.reshape(build.like(*m.node("f"), {m.value("x")}), m.root()->output()->shape());
              },
          .quantized = true};
}

// What a permutation between two reshapes does to axes of one element is done by the reshapes.
Rule permute_without_ones() {
  return {.name = "permute_without_ones",
          .equation = "reshape(permute(reshape(x))) = the same with axes of one element left out between",
          .pattern = op("reshape", {exclusive(op("permute", {op("reshape", {any("x")}, "seen")}, "moved"))}),
          .guards = {{"an axis that is permuted has one element",
                      [](const Match& m) { return std::ranges::count(m.value("seen")->shape(), Dim(1)) > 0; }},
                     kOneScale},
          .exactness = "bit for bit",
          .rewrite =
              [](const Match& m, Build& build) {
                const Shape& seen = m.value("seen")->shape();
                const auto rank = static_cast<int64_t>(seen.size());
                // Where an axis goes that is left, and the axes that are left in their new order.
                std::vector<int64_t> place(seen.size());
                Shape shape;
                for (size_t k = 0; k < seen.size(); ++k) {
                  place[k] = static_cast<int64_t>(shape.size());
                  if (seen[k] != Dim(1)) shape.push_back(seen[k]);
                }
                std::vector<Dim> perm;
                for (const Dim& axis : m.node("moved")->integers("perm")) {
                  const auto at = static_cast<size_t>((axis.value() + rank) % rank);
                  if (seen[at] != Dim(1)) perm.emplace_back(place[at]);
                }
                ir::Value* x = build.op("permute", {build.reshape(m.value("x"), shape)}, {{"perm", perm}});
                return build.reshape(x, m.root()->output()->shape());
              },
          .quantized = true};
}

}  // namespace

const RuleSet& merging() {
  static const RuleSet set = {"merging",
                              "Neighbours in one, after everything is legal, where that is cheaper.",
                              {depthwise_into_producer(), function_between_reshapes(), permute_without_ones()}};
  return set;
}

}  // namespace hetnn::passes::legal
