// Compositions that are one operator, and operators that are a case of another.
#include <algorithm>
#include <cmath>

#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::canonical {
namespace {

bool slopes_at_most_one(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("c"));
  return std::all_of(slopes.begin(), slopes.end(), [](double c) { return c <= 1 && c != 0; });
}
bool slopes_at_least_one(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("c"));
  return std::all_of(slopes.begin(), slopes.end(), [](double c) { return c >= 1 && std::isfinite(c); });
}

// The constant as slopes of a PReLU: one, or one a channel.
std::optional<std::vector<double>> slopes_of(const Match& m) {
  const Tensor& c = *m.tensor("c");
  if (auto one = single_value(c)) return std::vector<double>{*one};
  auto found = along_one_axis(c, m.value("x")->shape());
  if (!found || found->axis != 1) return std::nullopt;
  return found->values;
}
constexpr Guard kSlopes = {"c is one number or one a channel", [](const Match& m) { return slopes_of(m).has_value(); }};

ir::Value* build_prelu(const Match& m, Build& build) {
  const std::vector<double> slopes = *slopes_of(m);
  ir::Value* x = m.value("x");
  if (slopes.size() == 1) return build.op("leaky_relu", {x}, {{"negative_slope", slopes[0]}});
  return build.op("prelu", {x, build.constant(x->dtype(), {static_cast<int64_t>(slopes.size())}, slopes)});
}

Rule prelu_from_maximum() {
  return {.name = "prelu_from_maximum",
          .equation = "max(x, c x) = prelu(x, c)",
          .pattern = op("maximum", {any("x"), op("mul", {any("x"), constant("c")})}),
          .guards = {kFloat, kShapedLikeX, {"c <= 1 and c is not 0, everywhere", slopes_at_most_one}, kSlopes},
          .exactness = "bit for bit; a zero may change its sign",
          .rewrite = build_prelu};
}
Rule prelu_from_minimum() {
  return {.name = "prelu_from_minimum",
          .equation = "min(x, c x) = prelu(x, c)",
          .pattern = op("minimum", {any("x"), op("mul", {any("x"), constant("c")})}),
          .guards = {kFloat, kShapedLikeX, {"c >= 1 and finite, everywhere", slopes_at_least_one}, kSlopes},
          .exactness = "bit for bit; a zero may change its sign",
          .rewrite = build_prelu};
}

Rule silu_from_product() {
  return {.name = "silu_from_product",
          .equation = "x sigmoid(x) = silu(x)",
          .pattern = op("mul", {any("x"), exclusive(op("sigmoid", {any("x")}))}),
          .guards = {},
          .exactness = "within a few roundings",
          .rewrite = [](const Match& m, Build& build) { return build.op("silu", {m.value("x")}); }};
}
Rule hardswish_from_product() {
  return {.name = "hardswish_from_product",
          .equation = "x hardsigmoid(x) = hardswish(x)",
          .pattern = op("mul", {any("x"), exclusive(op("hardsigmoid", {any("x")}))}),
          .guards = {},
          .exactness = "within a few roundings",
          .rewrite = [](const Match& m, Build& build) { return build.op("hardswish", {m.value("x")}); }};
}

ir::Value* clamp(Build& build, ir::Value* x, double lo, double hi) {
  return build.op("clamp", {x}, {{"min", lo}, {"max", hi}});
}
constexpr Guard kScalar = {"c is one number", [](const Match& m) { return m.tensor("c")->elems() == 1; }};

Rule clamp_from_maximum() {
  return {.name = "clamp_from_maximum",
          .equation = "max(x, c) = clamp(x; c, inf)",
          .pattern = op("maximum", {any("x"), constant("c")}),
          .guards = {kFloat,
                     kShapedLikeX,
                     kScalar,
                     {"c is not NaN", [](const Match& m) { return !std::isnan(*single_value(*m.tensor("c"))); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            return clamp(build, m.value("x"), *single_value(*m.tensor("c")), INFINITY);
          }};
}
Rule clamp_from_minimum() {
  return {.name = "clamp_from_minimum",
          .equation = "min(x, c) = clamp(x; -inf, c)",
          .pattern = op("minimum", {any("x"), constant("c")}),
          .guards = {kFloat,
                     kShapedLikeX,
                     kScalar,
                     {"c is not NaN", [](const Match& m) { return !std::isnan(*single_value(*m.tensor("c"))); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            return clamp(build, m.value("x"), -INFINITY, *single_value(*m.tensor("c")));
          }};
}

Rule clamp_from_where() {
  return {.name = "clamp_from_where",
          .equation = "x <= t ? t : x = clamp(x; t, inf)",
          .pattern = op("where", {op("le", {any("x"), constant("t")}), constant("v"), any("x")}),
          .guards = {kFloat,
                     kShapedLikeX,
                     {"t and v are one and the same number",
                      [](const Match& m) {
                        const auto t = single_value(*m.tensor("t")), v = single_value(*m.tensor("v"));
                        return t && v && *t == *v;
                      }}},
          .exactness = "bit for bit; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            return clamp(build, m.value("x"), *single_value(*m.tensor("t")), INFINITY);
          }};
}

constexpr Guard kZeroBound = {"the bound is 0 everywhere", [](const Match& m) {
                                const std::vector<double> zero = to_doubles(*m.tensor("zero"));
                                return std::all_of(zero.begin(), zero.end(), [](double v) { return v == 0; });
                              }};

Rule prelu_from_where() {
  return {.name = "prelu_from_where",
          .equation = "x > 0 ? x : c x = prelu(x, c)",
          .pattern = op("where", {one_of({"gt", "ge"}, {any("x"), constant("zero")}), any("x"),
                                  op("mul", {any("x"), constant("c")})}),
          .guards = {kFloat, kShapedLikeX, kZeroBound, kSlopes},
          .exactness = "bit for bit; a zero may change its sign",
          .rewrite = build_prelu};
}
Rule prelu_from_where_below() {
  return {.name = "prelu_from_where_below",
          .equation = "x < 0 ? c x : x = prelu(x, c)",
          .pattern = op("where", {one_of({"lt", "le"}, {any("x"), constant("zero")}),
                                  op("mul", {any("x"), constant("c")}), any("x")}),
          .guards = {kFloat, kShapedLikeX, kZeroBound, kSlopes},
          .exactness = "bit for bit; a zero may change its sign",
          .rewrite = build_prelu};
}

bool is_hardsigmoid(const Match& m) {
  const auto shift = single_value(*m.tensor("c")), factor = factor_of(*m.root(), *m.tensor("d"));
  const ir::Node& clamped = *m.node("clamp");
  return shift == 3.0 && factor && std::abs(*factor * 6 - 1) < 1e-6 && clamped.real("min") == 0 &&
         clamped.real("max") == 6;
}

constexpr Guard kHardsigmoid = {"the constants are 3, 0, 6 and 6 (or 1/6, as a factor)", is_hardsigmoid};

Rule hardsigmoid_from_clamp() {
  return {
      .name = "hardsigmoid_from_quotient",
      .equation = "clamp(x + 3; 0, 6) / 6 = hardsigmoid(x)",
      .pattern = one_of({"div", "mul"}, {op("clamp", {op("add", {any("x"), constant("c")})}, "clamp"), constant("d")}),
      .guards = {kFloat, kShapedLikeX, kHardsigmoid},
      .exactness = "within a few roundings of 1",
      .rewrite = [](const Match& m, Build& build) { return build.op("hardsigmoid", {m.value("x")}); }};
}
Rule hardswish_from_clamp() {
  const Pattern clamped = op("clamp", {op("add", {any("x"), constant("c")})}, "clamp");
  return {.name = "hardswish_from_quotient",
          .equation = "x clamp(x + 3; 0, 6) / 6 = hardswish(x)",
          .pattern = one_of({"div", "mul"}, {op("mul", {any("x"), clamped}), constant("d")}),
          .guards = {kFloat, kShapedLikeX, kHardsigmoid},
          .exactness = "within a few roundings of x",
          .rewrite = [](const Match& m, Build& build) { return build.op("hardswish", {m.value("x")}); }};
}

}  // namespace

const RuleSet& activations() {
  static const RuleSet set = [] {
    RuleSet made = {"activations",
                    "Compositions that are one operator, and operators that are a case of another.",
                    {prelu_from_maximum(), prelu_from_minimum(), silu_from_product(), hardswish_from_product(),
                     clamp_from_maximum(), clamp_from_minimum(), clamp_from_where(), prelu_from_where(),
                     prelu_from_where_below(), hardsigmoid_from_clamp(), hardswish_from_clamp()}};
    for (Rule& rule : gelu_rules()) made.rules.push_back(std::move(rule));
    for (Rule& rule : piece_rules()) made.rules.push_back(std::move(rule));
    return made;
  }();
  return set;
}

}  // namespace hetnn::passes::canonical
