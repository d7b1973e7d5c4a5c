// Elementwise arithmetic: constants that vary along one axis become 1×1 depthwise convolutions, differences sums.
#include <algorithm>
#include <array>

#include "hetnn/passes/legal/bounds.h"
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

constexpr std::string_view kRounded = "the rounding of one multiply-add in f32; NaN and inf as in the original";

// The constant c along one axis of x, where the result is shaped like x.
std::optional<AxisConstant> axis_constant(const Match& m) {
  const ir::Value& x = *m.value("x");
  if (!has_arithmetic(x.dtype()) || m.root()->output()->shape() != x.shape()) return std::nullopt;
  return along_one_axis(*m.tensor("c"), x.shape());
}
constexpr Guard kOneAxis = {"c is real and varies along at most one axis of x, of fixed size",
                            [](const Match& m) { return axis_constant(m).has_value(); }};

std::vector<double> fill(size_t count, double value) { return std::vector<double>(count, value); }
std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

Rule multiply() {
  return {.name = "multiply_as_depthwise",
          .equation = "x c = diag(c) x",
          .pattern = op("mul", {any("x"), constant("c")}),
          .guards = {kOneAxis},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *axis_constant(m);
            return depthwise(build, m.value("x"), c.axis, c.values);
          }};
}

Rule divide() {
  return {.name = "divide_as_depthwise",
          .equation = "x / c = diag(1/c) x",
          .pattern = op("div", {any("x"), constant("c")}),
          .guards = {kOneAxis},
          .exactness = "within 1 ulp: the reciprocal is rounded first",
          .rewrite = [](const Match& m, Build& build) {
            AxisConstant c = *axis_constant(m);
            for (double& value : c.values) value = 1 / value;
            return depthwise(build, m.value("x"), c.axis, c.values);
          }};
}

Rule add_constant() {
  return {.name = "add_constant_as_depthwise",
          .equation = "x + c = diag(1) x + c, a depthwise convolution with bias c",
          .pattern = op("add", {any("x"), constant("c")}),
          .guards = {kOneAxis},
          .exactness = kRounded,
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *axis_constant(m);
            return depthwise(build, m.value("x"), c.axis, fill(c.values.size(), 1), c.values);
          }};
}

Rule subtract_constant() {
  return {.name = "subtract_constant_as_depthwise",
          .equation = "x - c = diag(1) x - c, a depthwise convolution with bias -c",
          .pattern = op("sub", {any("x"), constant("c")}),
          .guards = {kOneAxis},
          .exactness = kRounded,
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *axis_constant(m);
            return depthwise(build, m.value("x"), c.axis, fill(c.values.size(), 1), scaled(c.values, -1));
          }};
}

Rule subtract_from_constant() {
  return {.name = "subtract_from_constant_as_depthwise",
          .equation = "c - x = diag(-1) x + c, a depthwise convolution with bias c",
          .pattern = op("sub", {constant("c"), any("x")}),
          .guards = {kOneAxis},
          .exactness = kRounded,
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *axis_constant(m);
            return depthwise(build, m.value("x"), c.axis, fill(c.values.size(), -1), c.values);
          }};
}

Rule negate() {
  return {.name = "negate_as_depthwise",
          .equation = "-x = diag(-1) x",
          .pattern = op("neg", {any("x")}),
          .guards = {kChannelsFixed},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            return depthwise(build, x, channel_axis(*x), fill(channel_count(*x), -1));
          }};
}

bool is_float_root(const Match& m) { return is_float(m.root()->output()->dtype()); }
constexpr Guard kFloat = {"the values are of a float type", is_float_root};

Rule subtract() {
  return {
      .name = "subtract_as_add",
      .equation = "a - b = a + (-b)",
      .pattern = op("sub", {any("a"), any("b")}),
      .guards = {kFloat},
      .exactness = "bit for bit",
      .rewrite = [](const Match& m, Build& build) { return build.add(m.value("a"), build.op("neg", {m.value("b")})); }};
}

// The operand that does not have the result's shape yet, by position; -1 when none or both are smaller.
int smaller_operand(const Match& m) {
  const Shape& y = m.root()->output()->shape();
  const bool a = m.value("a")->shape() == y, b = m.value("b")->shape() == y;
  return a == b ? -1 : a ? 1 : 0;
}

Rule broadcast() {
  return {.name = "broadcast_as_expand",
          .equation = "f(a, b) = f(a, expand(b))",
          .pattern = one_of({"add", "sub", "mul", "div", "maximum", "minimum"}, {any("a"), any("b")}),
          .guards = {{"one operand alone is smaller than the result",
                      [](const Match& m) { return smaller_operand(m) >= 0; }},
                     kNoBound},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            std::vector<ir::Value*> operands = {m.value("a"), m.value("b")};
            ir::Value*& smaller = operands[static_cast<size_t>(smaller_operand(m))];
            smaller = build.op("expand", {smaller}, {{"shape", m.root()->output()->shape()}});
            return build.like(*m.root(), operands);
          }};
}

Rule power_of_two() {
  return {.name = "power_of_two_as_product",
          .equation = "x^2 = x x",
          .pattern = op("pow", {any("x"), constant("c")}),
          .guards = {{"the exponent is 2 everywhere", [](const Match& m) { return all_equal(*m.tensor("c"), 2); }},
                     {"the result is shaped like x",
                      [](const Match& m) { return m.value("x")->type() == m.root()->output()->type(); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) { return build.mul(m.value("x"), m.value("x")); }};
}

bool has_no_zero(const Match& m) { return std::ranges::count(m.root()->reals("coefficients"), 0) == 0; }

Rule several_as_pairs() {
  return {.name = "several_as_pairs",
          .equation = "c1 x1 + c2 x2 + c3 x3 = (c1 x1 + c2 x2) + c3 x3; products and extremes likewise",
          .pattern = op("nary"),
          .guards = {kFloat, {"no coefficient is 0", has_no_zero}},
          .exactness = "bit for bit in f32 and f64; of fewer bits every step is rounded",
          .rewrite = [](const Match& m, Build& build) {
            const ir::Node& root = *m.root();
            const std::vector<double>& coefficients = root.reals("coefficients");
            ir::Value* so_far = nullptr;
            for (size_t k = 0; k < root.inputs().size(); ++k) {
              const double c = coefficients.empty() ? 1 : coefficients[k];
              ir::Value* x = root.input(k);
              const bool less = so_far && c == -1;
              if (c != 1 && !less) x = build.mul(x, build.constant(x->dtype(), {}, std::array{c}));
              so_far = !so_far ? x : less ? build.sub(so_far, x) : build.op(root.string("op"), {so_far, x});
            }
            return so_far == root.input(0) ? build.op(ops::kIdentity, {so_far}) : so_far;
          }};
}

}  // namespace

const RuleSet& arithmetic() {
  static const RuleSet set = {
      "arithmetic",
      "Arithmetic with constants as 1x1 depthwise convolutions; differences as sums, sums of several as pairs.",
      {multiply(), divide(), add_constant(), subtract_constant(), subtract_from_constant(), negate(), subtract(),
       broadcast(), power_of_two(), several_as_pairs()}};
  return set;
}

}  // namespace hetnn::passes::legal
