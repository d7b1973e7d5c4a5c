// Attention taken apart.
#include "hetnn/passes/attention.h"

#include <algorithm>
#include <cmath>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/apply_rules.h"

namespace hetnn::passes {
namespace {

// Without a mask: one that hides a whole row makes NaN of softmax, where attention gives zeros.
bool is_plain(const Match& m) {
  const ir::Node& node = *m.root();
  const Shape &q = node.input(0)->shape(), &k = node.input(1)->shape();
  const bool masked = node.inputs().size() > 3 && node.input(3);
  return node.output()->dtype() == DType::f32 && q.size() == 4 && q[1] == k[1] && q[3].is_static() &&
         !node.flag("is_causal") && !masked;
}

ir::Value* apart(const Match& m, Build& build) {
  const ir::Node& node = *m.root();
  const double given = node.real("scale"), size = static_cast<double>(node.input(0)->shape()[3].value());
  const std::vector<double> scale = {given != 0 ? given : 1 / std::sqrt(size)};
  ir::Value* q = build.op("mul", {node.input(0), build.constant(DType::f32, {1}, scale)});
  ir::Value* turned = build.op("permute", {node.input(1)}, {{"perm", std::vector<Dim>{0, 1, 3, 2}}});
  ir::Value* scores = build.op("matmul", {q, turned});
  return build.op("matmul", {build.op("softmax", {scores}, {{"axis", Dim(3)}}), node.input(2)});
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
                                .equation = "attention(q, k, v) = matmul(softmax(matmul(q scale, k turned)), v)",
                                .pattern = op("scaled_dot_product_attention", {any("q"), any("k"), any("v")}),
                                .guards = {{"as many heads, and no mask", is_plain}},
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
