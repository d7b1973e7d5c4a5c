// Piecewise linear functions from relu and channelwise affine maps; smooth ones from their factors.
#include <algorithm>
#include <cmath>

#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

std::vector<double> negative(std::vector<double> values) {
  for (double& value : values) value = -value;
  return values;
}

// Where a bound is met from decides what is exact. max(x, c) = x + relu(c - x) gives back every x above c as it is, and
// cancels half a unit of x away from one far below; c + relu(x - c) is c everywhere below, and rounds what is above to
// units of c. Values near 0 are those that a network's accuracy hangs on, so each bound takes the form that is exact
// there.
ir::Value* at_least(Build& build, ir::Value* x, int axis, const std::vector<double>& c) {
  const std::vector<double> one(c.size(), 1), minus(c.size(), -1);
  const auto is = [&](auto test) { return std::all_of(c.begin(), c.end(), test); };
  if (is([](double v) { return v == 0; })) return build.relu(x);
  if (is([](double v) { return v >= 0; })) {
    return depthwise(build, build.relu(depthwise(build, x, axis, one, negative(c))), axis, one, c);
  }
  return build.add(x, build.relu(depthwise(build, x, axis, minus, c)));
}

ir::Value* at_most(Build& build, ir::Value* x, int axis, const std::vector<double>& c) {
  const std::vector<double> one(c.size(), 1), minus(c.size(), -1);
  if (std::all_of(c.begin(), c.end(), [](double v) { return v <= 0; })) {
    return depthwise(build, build.relu(depthwise(build, x, axis, minus, c)), axis, minus, c);
  }
  return build.add(x, depthwise(build, build.relu(depthwise(build, x, axis, one, negative(c))), axis, minus));
}

std::vector<double> everywhere(const ir::Value& x, double c) { return std::vector<double>(channel_count(x), c); }

// x·scale + shift with the same scale and shift for every channel.
ir::Value* affine(Build& build, ir::Value* x, double scale, double shift) {
  const std::vector<double> shifts = everywhere(*x, shift);
  return depthwise(build, x, channel_axis(*x), everywhere(*x, scale),
                   shift == 0 ? std::span<const double>() : std::span<const double>(shifts));
}

double lo_of(const Match& m) { return m.root()->real("min"); }
double hi_of(const Match& m) { return m.root()->real("max"); }
bool bounds_in_order(const Match& m) { return lo_of(m) <= hi_of(m); }

Rule clamp() {
  return {.name = "clamp_around_zero",
          .equation = "clamp(x; lo, hi) = v - relu(v - hi) with v = x + relu(lo - x), relu(x) for lo = 0",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"lo <= 0 <= hi, both finite, not both 0",
                      [](const Match& m) {
                        return lo_of(m) <= 0 && hi_of(m) >= 0 && lo_of(m) < hi_of(m) && std::isfinite(lo_of(m)) &&
                               std::isfinite(hi_of(m));
                      }}},
          .exactness = "bit for bit from lo to hi and to twice as far; beyond, within a unit of x; inf gives NaN",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const int axis = channel_axis(*x);
            ir::Value* above = at_least(build, x, axis, everywhere(*x, lo_of(m)));
            return at_most(build, above, axis, everywhere(*x, hi_of(m)));
          }};
}

Rule clamp_off_zero() {
  return {.name = "clamp_off_zero",
          .equation = "clamp(x; lo, hi) = lo + relu(x - lo) - relu(x - hi) = hi - relu((hi - lo) - relu(x - lo))",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"lo <= hi, both finite, on one side of 0",
                      [](const Match& m) {
                        return bounds_in_order(m) && std::isfinite(lo_of(m)) && std::isfinite(hi_of(m)) &&
                               (lo_of(m) > 0 || hi_of(m) < 0 || lo_of(m) == hi_of(m));
                      }}},
          .exactness = "within a few roundings of max(|lo|, |hi|); NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            const double lo = lo_of(m), hi = hi_of(m);
            ir::Value* above = build.relu(affine(build, m.value("x"), 1, -lo));
            return affine(build, build.relu(affine(build, above, -1, hi - lo)), -1, hi);
          }};
}

Rule clamp_below() {
  return {.name = "clamp_below_from_relu",
          .equation = "clamp(x; lo, inf) = lo + relu(x - lo), for lo < 0 x + relu(lo - x)",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"lo is finite and hi is inf",
                      [](const Match& m) { return std::isfinite(lo_of(m)) && hi_of(m) == INFINITY; }}},
          .exactness = "within a rounding of max(|x|, |lo|), bit for bit around 0; for lo < 0, -inf gives NaN",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            return at_least(build, x, channel_axis(*x), everywhere(*x, lo_of(m)));
          }};
}

Rule clamp_above() {
  return {.name = "clamp_above_from_relu",
          .equation = "clamp(x; -inf, hi) = x - relu(x - hi), for hi <= 0 hi - relu(hi - x)",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"hi is finite and lo is -inf",
                      [](const Match& m) { return std::isfinite(hi_of(m)) && lo_of(m) == -INFINITY; }}},
          .exactness = "within a rounding of max(|x|, |hi|), bit for bit around 0; for hi > 0, inf gives NaN",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            return at_most(build, x, channel_axis(*x), everywhere(*x, hi_of(m)));
          }};
}

Rule clamp_by_bounds() {
  return {.name = "clamp_from_minimum_and_maximum",
          .equation = "clamp(x; lo, hi) = min(max(x, lo), hi)",
          .pattern = op("clamp", {any("x")}),
          .guards = {{"x is real", [](const Match& m) { return has_arithmetic(m.value("x")->dtype()); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            const double lo = lo_of(m), hi = hi_of(m);
            ir::Value* y = m.value("x");
            const DType dtype = y->dtype();
            if (lo != -INFINITY) y = build.op("maximum", {y, build.constant(dtype, {}, std::span(&lo, 1))});
            if (hi != INFINITY) y = build.op("minimum", {y, build.constant(dtype, {}, std::span(&hi, 1))});
            return y == m.value("x") ? nullptr : y;
          }};
}

Rule relu_by_clamp() {
  return {.name = "relu_as_clamp",
          .equation = "relu(x) = clamp(x; 0, inf)",
          .pattern = op("relu", {any("x")}),
          .guards = {},
          .exactness = "equal; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            return build.op("clamp", {m.value("x")}, {{"min", 0.0}, {"max", static_cast<double>(INFINITY)}});
          }};
}

Rule hardsigmoid() {
  return {.name = "hardsigmoid_from_clamp",
          .equation = "hardsigmoid(x) = clamp(x/6 + 1/2; 0, 1)",
          .pattern = op("hardsigmoid", {any("x")}),
          .guards = {kChannelsFixed},
          .exactness = "within a few roundings of 1; NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            return build.op("clamp", {affine(build, m.value("x"), 1.0 / 6, 0.5)}, {{"min", 0.0}, {"max", 1.0}});
          }};
}

Rule hardswish() {
  return {.name = "hardswish_as_product",
          .equation = "hardswish(x) = x hardsigmoid(x)",
          .pattern = op("hardswish", {any("x")}),
          .guards = {},
          .exactness = "within a few roundings; -inf gives NaN through inf * 0 as in the original",
          .rewrite = [](const Match& m, Build& build) {
            return build.mul(m.value("x"), build.op("hardsigmoid", {m.value("x")}));
          }};
}

Rule silu() {
  return {.name = "silu_as_product",
          .equation = "silu(x) = x sigmoid(x)",
          .pattern = op("silu", {any("x")}),
          .guards = {},
          .exactness = "within a few roundings",
          .rewrite = [](const Match& m, Build& build) {
            return build.mul(m.value("x"), build.op("sigmoid", {m.value("x")}));
          }};
}

Rule absolute() {
  return {.name = "abs_from_relu",
          .equation = "|x| = relu(x) + relu(-x)",
          .pattern = op("abs", {any("x")}),
          .guards = {{"x is of a float type", [](const Match& m) { return is_float(m.value("x")->dtype()); }}},
          .exactness = "bit for bit, NaN and inf included",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            ir::Value* above = build.relu(x);
            return build.add(above, build.relu(build.op("neg", {x})));
          }};
}

bool operands_alike(const Match& m) {
  return is_float(m.value("a")->dtype()) && m.value("a")->shape() == m.value("b")->shape();
}
constexpr Guard kAlike = {"both operands are of a float type and of one shape", operands_alike};

Rule maximum() {
  return {.name = "maximum_from_relu",
          .equation = "max(a, b) = a + relu(b - a)",
          .pattern = op("maximum", {any("a"), any("b")}),
          .guards = {kAlike},
          .exactness = "exact in real arithmetic, within roundings of max(|a|, |b|); equal infinities give NaN",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* a = m.value("a");
            return build.add(a, build.relu(build.sub(m.value("b"), a)));
          }};
}

Rule minimum() {
  return {.name = "minimum_from_relu",
          .equation = "min(a, b) = a - relu(a - b)",
          .pattern = op("minimum", {any("a"), any("b")}),
          .guards = {kAlike},
          .exactness = "exact in real arithmetic, within roundings of max(|a|, |b|); equal infinities give NaN",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* a = m.value("a");
            return build.sub(a, build.relu(build.sub(a, m.value("b"))));
          }};
}

// The finite constant c along one axis of x.
std::optional<AxisConstant> bound_of(const Match& m) {
  const ir::Value& x = *m.value("x");
  if (!has_arithmetic(x.dtype()) || m.root()->output()->shape() != x.shape()) return std::nullopt;
  auto found = along_one_axis(*m.tensor("c"), x.shape());
  if (found && !std::all_of(found->values.begin(), found->values.end(), [](double v) { return std::isfinite(v); }))
    return std::nullopt;
  return found;
}
constexpr Guard kBound = {"c is finite and varies along at most one axis of x, of fixed size",
                          [](const Match& m) { return bound_of(m).has_value(); }};

Rule maximum_with_constant() {
  return {.name = "maximum_with_constant",
          .equation =
              "max(x, c) = c + relu(x - c), where some c < 0 x + relu(c - x), by depthwise convolutions with biases",
          .pattern = op("maximum", {any("x"), constant("c")}),
          .guards = {kBound},
          .exactness =
              "within a rounding of max(|x|, |c|), bit for bit around 0; an infinite x that is cut at 0 or further "
              "gives NaN",
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *bound_of(m);
            return at_least(build, m.value("x"), c.axis, c.values);
          }};
}

Rule minimum_with_constant() {
  return {.name = "minimum_with_constant",
          .equation =
              "min(x, c) = c - relu(c - x), where some c > 0 x - relu(x - c), by depthwise convolutions with biases",
          .pattern = op("minimum", {any("x"), constant("c")}),
          .guards = {kBound},
          .exactness =
              "within a rounding of max(|x|, |c|), bit for bit around 0; an infinite x that is cut at 0 or further "
              "gives NaN",
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *bound_of(m);
            return at_most(build, m.value("x"), c.axis, c.values);
          }};
}

constexpr int64_t kMaxoutPieces = 16;

// The one axis of fixed, small size that is reduced, or -1.
int maxout_axis(const Match& m) {
  const std::vector<Dim>& axes = m.root()->integers("axes");
  const ir::Value& x = *m.value("x");
  if (axes.size() != 1 || !is_float(x.dtype())) return -1;
  const auto axis = static_cast<int>(axes[0].value() < 0 ? axes[0].value() + x.rank() : axes[0].value());
  const Dim& size = x.shape()[static_cast<size_t>(axis)];
  return size.is_static() && size.value() >= 1 && size.value() <= kMaxoutPieces ? axis : -1;
}
constexpr Guard kMaxout = {"one axis of fixed size, at most 16, is reduced",
                           [](const Match& m) { return maxout_axis(m) >= 0; }};

ir::Value* fold_pieces(const Match& m, Build& build, std::string_view op) {
  ir::Value* x = m.value("x");
  const int axis = maxout_axis(m);
  const int64_t pieces = x->shape()[static_cast<size_t>(axis)].value();
  ir::Value* y = nullptr;
  for (int64_t k = 0; k < pieces; ++k) {
    ir::Value* piece = build.op("slice", {x}, {{"axis", Dim(axis)}, {"start", Dim(k)}, {"end", Dim(k + 1)}});
    y = y ? build.op(op, {y, piece}) : piece;
  }
  return build.reshape(y, m.root()->output()->shape());
}

Rule maxout() {
  return {.name = "reduce_max_as_maximum",
          .equation = "max over k of x[k] = max(max(x[0], x[1]), ...): maxout",
          .pattern = op("reduce_max", {any("x")}),
          .guards = {kMaxout},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) { return fold_pieces(m, build, "maximum"); }};
}
Rule minout() {
  return {.name = "reduce_min_as_minimum",
          .equation = "min over k of x[k] = min(min(x[0], x[1]), ...)",
          .pattern = op("reduce_min", {any("x")}),
          .guards = {kMaxout},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) { return fold_pieces(m, build, "minimum"); }};
}

}  // namespace

const RuleSet& piecewise() {
  static const RuleSet set = {"piecewise",
                              "Piecewise linear functions from relu, smooth ones from their factors.",
                              {clamp(), clamp_off_zero(), clamp_below(), clamp_above(), clamp_by_bounds(),
                               relu_by_clamp(), hardsigmoid(), hardswish(), silu(), absolute(), maximum_with_constant(),
                               minimum_with_constant(), maximum(), minimum(), maxout(), minout()}};
  return set;
}

}  // namespace hetnn::passes::legal
