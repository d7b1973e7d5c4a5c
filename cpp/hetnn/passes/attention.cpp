// Attention taken apart.
#include "hetnn/passes/attention.h"

#include <algorithm>
#include <cmath>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/apply_rules.h"
#include "hetnn/passes/integer_layers.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

ir::Value* mask_of(const ir::Node& attention) { return attention.inputs().size() > 3 ? attention.input(3) : nullptr; }

// Scores are in hundreds at most: what is added to them leaves them as they are, or leaves no share.
bool is_moderate(double added) { return std::fabs(added) < 1e3; }
bool is_hidden(double added) { return added <= kHides; }

// A constant mask of reals that are 0 or hide; of rows without any other none is hidden by less than -inf.
bool only_hides(const Tensor& mask) {
  const std::vector<double> added = to_doubles(mask);
  const size_t row = mask.shape().empty() ? 1 : static_cast<size_t>(mask.shape().back());
  for (size_t begin = 0; begin < added.size(); begin += row) {
    const std::span<const double> each(added.data() + begin, row);
    if (!std::ranges::all_of(each, [](double v) { return v == 0 || is_hidden(v); })) return false;
    if (is_hidden(std::ranges::max(each)) && std::isfinite(std::ranges::max(each))) return false;
  }
  return true;
}

bool has_products(const Match& m) {
  const ir::Node& node = *m.root();
  const Shape &q = node.input(0)->shape(), &k = node.input(1)->shape();
  if (node.string("undefined") != "masked") return false;
  if (node.output()->dtype() != DType::f32 || q.size() != 4 || q[1] != k[1] || !q[3].is_static()) return false;
  const ir::Value* mask = mask_of(node);
  if (node.flag("is_causal")) return !mask && q[2].is_static() && k[2].is_static();
  if (!mask || mask->dtype() == DType::boolean) return true;
  const Tensor* fixed = node.constant_input(3);
  return fixed && (only_hides(*fixed) || std::ranges::all_of(to_doubles(*fixed), is_moderate));
}

// What scores and shares of scores get added; null for nothing. A share is 1 at most: less 1 it is below 0, where it
// ends, so that a row of nothing but what is hidden has none.
struct Added {
  ir::Value *to_scores = nullptr, *to_shares = nullptr;
};

// By what is seen; rows are those of the last axis.
Added by_constant(Build& build, const std::vector<int64_t>& shape, const std::vector<double>& seen) {
  if (std::ranges::all_of(seen, [](double v) { return v != 0; })) return {};
  const auto instead = [&](double hidden) {
    std::vector<double> numbers(seen);
    for (double& number : numbers) number = number != 0 ? 0 : hidden;
    return build.constant(DType::f32, shape, numbers);
  };
  const auto row = static_cast<std::ptrdiff_t>(shape.empty() ? 1 : shape.back());
  bool all_see = true;
  for (auto at = seen.begin(); at != seen.end(); at += row)
    all_see &= std::any_of(at, at + row, [](double v) { return v != 0; });
  return {.to_scores = instead(kHides), .to_shares = all_see ? nullptr : instead(-1)};
}

Added by_booleans(Build& build, ir::Value* mask, const Shape& scores) {
  // Accelerators add values of one shape, or one for all images and heads.
  const Shape& shape = mask->shape();
  if (shape.size() == 4 && (shape[0] != Dim(1) || shape[1] != Dim(1)) && shape != scores)
    mask = build.op("expand", {mask}, {{"shape", scores}});
  const auto instead = [&](double hidden) {
    const double numbers[] = {0, hidden};
    ir::Value *zero = build.constant(DType::f32, {1}, {numbers, 1}),
              *other = build.constant(DType::f32, {1}, {numbers + 1, 1});
    return build.op("where", {mask, zero, other});
  };
  return {.to_scores = instead(kHides), .to_shares = instead(-1)};
}

Added added_by(const ir::Node& attention, Build& build) {
  const Shape &q = attention.input(0)->shape(), &k = attention.input(1)->shape();
  ir::Value* mask = mask_of(attention);
  if (attention.flag("is_causal")) {
    const int64_t rows = q[2].value(), keys = k[2].value();
    std::vector<double> seen(static_cast<size_t>(rows * keys));
    for (int64_t i = 0; i < rows; ++i) std::fill_n(seen.begin() + i * keys, std::min(i + 1, keys), 1.0);
    return by_constant(build, {1, 1, rows, keys}, seen);
  }
  if (!mask) return {};
  const Tensor* fixed = attention.constant_input(3);
  if (!fixed) return by_booleans(build, mask, {q[0], q[1], q[2], k[2]});
  if (mask->dtype() != DType::boolean && !only_hides(*fixed)) return {.to_scores = mask};
  std::vector<double> seen = to_doubles(*fixed);
  if (mask->dtype() != DType::boolean)
    for (double& number : seen) number = number == 0;
  return by_constant(build, {fixed->shape().begin(), fixed->shape().end()}, seen);
}

ir::Value* apart(const Match& m, Build& build) {
  const ir::Node& node = *m.root();
  const double given = node.real("scale"), size = static_cast<double>(node.input(0)->shape()[3].value());
  const std::vector<double> scale = {given != 0 ? given : 1 / std::sqrt(size)};
  ir::Value* q = build.op("mul", {node.input(0), build.constant(DType::f32, {1}, scale)});
  ir::Value* turned = build.op("permute", {node.input(1)}, {{"perm", std::vector<Dim>{0, 1, 3, 2}}});
  ir::Value* scores = build.op("matmul", {q, turned});
  const Added added = added_by(node, build);
  if (added.to_scores) scores = build.op("add", {scores, added.to_scores});
  ir::Value* shares = build.op("softmax", {scores}, {{"axis", Dim(3)}});
  if (added.to_shares) shares = build.op("relu", {build.op("add", {shares, added.to_shares})});
  return build.op("matmul", {shares, node.input(2)});
}

// Queries, keys and values are often slices of one value of five axes, which accelerators lack: cut out first, each has
// fewer.
bool is_cut_of_five(const Match& m) {
  const ir::Node& slice = *m.root();
  return m.node("inner")->output()->rank() > 4 && slice.integer("step") == Dim(1) &&
         slice.integer("start").is_static() && slice.integer("end").is_static() &&
         m.value("x")->type().quant == std::nullopt;
}

ops::Attrs cut(const ir::Node& slice, const Dim& axis, const Dim& factor) {
  ops::Attrs attrs = slice.attrs();
  attrs.insert_or_assign("axis", axis);
  attrs.insert_or_assign("start", slice.integer("start") * factor);
  attrs.insert_or_assign("end", slice.integer("end") * factor);
  return attrs;
}

ir::Value* cut_before_permute(const Match& m, Build& build) {
  const ir::Node &slice = *m.root(), &permute = *m.node("inner");
  const int axis = ops::axis_of(slice.call(), slice.integer("axis"), permute.output()->rank());
  const Dim from = permute.integers("perm")[static_cast<size_t>(axis)];
  return build.op("permute", {build.op("slice", {m.value("x")}, cut(slice, from, 1))}, permute.attrs());
}

// Where the reshape makes the last axis of x several, the first of which is cut.
ir::Value* cut_before_reshape(const Match& m, Build& build) {
  const ir::Node& slice = *m.root();
  const Shape &x = m.value("x")->shape(), &y = m.node("inner")->output()->shape();
  const auto axis =
      static_cast<size_t>(ops::axis_of(slice.call(), slice.integer("axis"), m.node("inner")->output()->rank()));
  const Dim end = slice.integer("end");
  if (axis + 1 != x.size() || !std::equal(x.begin(), x.end() - 1, y.begin()) || slice.integer("start").value() < 0 ||
      !y[axis].is_static() || end.value() < 0 || end.value() > y[axis].value())
    return nullptr;
  const Dim each = elements(y, static_cast<int>(axis) + 1);
  ir::Value* part = build.op("slice", {m.value("x")}, cut(slice, Dim(static_cast<int64_t>(axis)), each));
  return build.reshape(part, slice.output()->shape());
}

}  // namespace

void attention_to_products(ir::Graph& graph) {
  static const RuleSet set = {"attention",
                              "Attention as the layers that it consists of.",
                              {{.name = "attention_as_products",
                                .equation = "attention(q, k, v) = matmul(softmax(matmul(q scale, k turned) + mask), v)",
                                .pattern = op("scaled_dot_product_attention", {any("q"), any("k"), any("v")}),
                                .guards = {{"as many heads, and a mask that is known to hide or not", has_products}},
                                .exactness = "the order of sums may differ",
                                .rewrite = apart},
                               {.name = "cut_before_permute",
                                .equation = "slice(permute(x)) = permute(slice(x)), of more than four axes",
                                .pattern = op("slice", {op("permute", {any("x")}, "inner")}),
                                .guards = {{"more than four axes, cut at fixed places", is_cut_of_five}},
                                .exactness = "bit for bit",
                                .rewrite = cut_before_permute},
                               {.name = "cut_before_reshape",
                                .equation = "slice(reshape(x)) = reshape(slice(x)), of more than four axes",
                                .pattern = op("slice", {op("reshape", {any("x")}, "inner")}),
                                .guards = {{"more than four axes, cut at fixed places", is_cut_of_five}},
                                .exactness = "bit for bit",
                                .rewrite = cut_before_reshape}}};
  apply_rules(graph, {&set});
}

}  // namespace hetnn::passes
