// Piecewise linear functions from relu and channelwise affine maps; smooth ones from their factors.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/legal/bounds.h"
#include "hetnn/passes/legal/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::legal {
namespace {

std::vector<double> negative(std::vector<double> values) {
  for (double& value : values) value = -value;
  return values;
}

std::vector<double> everywhere(const ir::Value& x, double c) { return std::vector<double>(channel_count(x), c); }

// Bounds are met from the side on which nothing can be lost: however large x is, infinite too, relu(c - x) is 0 beyond
// the bound, and the result the bound itself. What is between is rounded to units of c.
ir::Value* at_least(Build& build, ir::Value* x, int axis, const std::vector<double>& c) {
  if (std::all_of(c.begin(), c.end(), [](double v) { return v == 0; })) return build.relu(x);
  const std::vector<double> one(c.size(), 1);
  return depthwise(build, build.relu(depthwise(build, x, axis, one, negative(c))), axis, one, c);
}

ir::Value* at_most(Build& build, ir::Value* x, int axis, const std::vector<double>& c) {
  const std::vector<double> minus(c.size(), -1);
  return depthwise(build, build.relu(depthwise(build, x, axis, minus, c)), axis, minus, c);
}

// x·scale + shift with the same scale and shift for every channel.
ir::Value* affine(Build& build, ir::Value* x, double scale, double shift) {
  const std::vector<double> shifts = everywhere(*x, shift);
  return depthwise(build, x, channel_axis(*x), everywhere(*x, scale),
                   shift == 0 ? std::span<const double>() : std::span<const double>(shifts));
}

double rounded(DType dtype, double value) {
  return to_doubles(from_doubles(dtype, {}, std::span<const double>(&value, 1))).front();
}

double unit_of(DType dtype) {
  return std::ldexp(1, dtype == DType::f64 ? -52 : dtype == DType::f32 ? -23 : dtype == DType::f16 ? -10 : -7);
}

// As much of hi - lo as keeps hi - width at lo or above, rounded as the device does.
double width_within(DType dtype, double lo, double hi) {
  const double low = rounded(dtype, lo), high = rounded(dtype, hi);
  double width = rounded(dtype, high - low);
  while (rounded(dtype, high - width) < low) width = rounded(dtype, width * (1 - unit_of(dtype)));
  return width;
}

// The last bit of c that is set, times all bits of a mantissa: up to there x - c is a number of the type.
double exact_up_to(DType dtype, double c) {
  int exponent = 0;
  const double mantissa = std::frexp(rounded(dtype, c), &exponent);
  double last = unit_of(dtype) / 2;
  while (std::fmod(mantissa, last * 2) == 0) last *= 2;
  return std::ldexp(last, exponent) * 2 / unit_of(dtype);
}

double lo_of(const Match& m) { return m.root()->real("min"); }
double hi_of(const Match& m) { return m.root()->real("max"); }
// Forms that go by relu(c - x) round what is small to units of c, which nobody misses while c is of ordinary size.
constexpr double kOrdinary = 16;
bool bounds_are_ordinary(const Match& m) {
  const auto ordinary = [](double c) { return std::isinf(c) || std::abs(c) <= kOrdinary; };
  return ordinary(lo_of(m)) && ordinary(hi_of(m));
}
constexpr Guard kOrdinaryBounds = {"no finite bound is further from 0 than 16", bounds_are_ordinary};

Rule clamp_from_zero() {
  return {.name = "clamp_from_zero",
          .equation = "clamp(x; 0, hi) = v - relu(v - hi) with v = relu(x)",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"lo = 0 < hi, finite",
                      [](const Match& m) { return lo_of(m) == 0 && hi_of(m) > 0 && std::isfinite(hi_of(m)); }}},
          .exactness = "bit for bit where no |x| is above 2^24 times the last bit of hi (f32), which must be known",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* above = build.relu(m.value("x"));
            ir::Value* beyond = build.relu(affine(build, above, 1, -hi_of(m)));
            return build.add(above, affine(build, beyond, -1, 0));
          }};
}

Rule clamp_from_relu() {
  return {.name = "clamp_from_relu",
          .equation = "clamp(x; lo, hi) = hi - relu((hi - lo) - relu(x - lo))",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"lo <= hi, both finite",
                      [](const Match& m) {
                        return lo_of(m) <= hi_of(m) && std::isfinite(lo_of(m)) && std::isfinite(hi_of(m));
                      }},
                     kOrdinaryBounds},
          .exactness = "within a few roundings of max(|lo|, |hi|), never outside; NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            const double lo = lo_of(m), hi = hi_of(m);
            ir::Value* x = m.value("x");
            ir::Value* above = build.relu(lo == 0 ? x : affine(build, x, 1, -lo));
            ir::Value* below = build.relu(affine(build, above, -1, width_within(x->dtype(), lo, hi)));
            return affine(build, below, -1, hi);
          }};
}

Rule clamp_below() {
  return {.name = "clamp_below_from_relu",
          .equation = "clamp(x; lo, inf) = lo + relu(x - lo)",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"lo is finite and hi is inf",
                      [](const Match& m) { return std::isfinite(lo_of(m)) && hi_of(m) == INFINITY; }},
                     kOrdinaryBounds},
          .exactness = "within a rounding of max(|x|, |lo|), never below lo; NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            return at_least(build, x, channel_axis(*x), everywhere(*x, lo_of(m)));
          }};
}

Rule clamp_above() {
  return {.name = "clamp_above_from_relu",
          .equation = "clamp(x; -inf, hi) = hi - relu(hi - x)",
          .pattern = op("clamp", {any("x")}),
          .guards = {kChannelsFixed,
                     {"hi is finite and lo is -inf",
                      [](const Match& m) { return std::isfinite(hi_of(m)) && lo_of(m) == -INFINITY; }},
                     kOrdinaryBounds},
          .exactness = "within a rounding of max(|x|, |hi|), never above hi; NaN and inf as in the original",
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
          .guards = {kAlike, kNoBound},
          .exactness = "exact in real arithmetic, within roundings of 16; both operands must be known to be within 16",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* a = m.value("a");
            return build.add(a, build.relu(build.sub(m.value("b"), a)));
          }};
}

Rule minimum() {
  return {.name = "minimum_from_relu",
          .equation = "min(a, b) = a - relu(a - b)",
          .pattern = op("minimum", {any("a"), any("b")}),
          .guards = {kAlike, kNoBound},
          .exactness = "exact in real arithmetic, within roundings of 16; both operands must be known to be within 16",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* a = m.value("a");
            return build.sub(a, build.relu(build.sub(a, m.value("b"))));
          }};
}

// The constant c along one axis of x.
std::optional<AxisConstant> bound_of(const Match& m) {
  const ir::Value& x = *m.value("x");
  if (!has_arithmetic(x.dtype()) || m.root()->output()->shape() != x.shape()) return std::nullopt;
  auto found = along_one_axis(*m.tensor("c"), x.shape());
  if (found &&
      !std::all_of(found->values.begin(), found->values.end(), [](double v) { return std::abs(v) <= kOrdinary; }))
    return std::nullopt;
  return found;
}
constexpr Guard kBound = {"c is at most 16 from 0 and varies along at most one axis of x, of fixed size",
                          [](const Match& m) { return bound_of(m).has_value(); }};

Rule maximum_with_constant() {
  return {.name = "maximum_with_constant",
          .equation = "max(x, c) = c + relu(x - c), by depthwise convolutions with biases",
          .pattern = op("maximum", {any("x"), constant("c")}),
          .guards = {kBound},
          .exactness = "within a rounding of max(|x|, |c|), never below c; NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *bound_of(m);
            return at_least(build, m.value("x"), c.axis, c.values);
          }};
}

Rule minimum_with_constant() {
  return {.name = "minimum_with_constant",
          .equation = "min(x, c) = c - relu(c - x), by depthwise convolutions with biases",
          .pattern = op("minimum", {any("x"), constant("c")}),
          .guards = {kBound},
          .exactness = "within a rounding of max(|x|, |c|), never above c; NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            const AxisConstant c = *bound_of(m);
            return at_most(build, m.value("x"), c.axis, c.values);
          }};
}

constexpr int64_t kMaxoutPieces = 16;

// The one axis of fixed, small size that is reduced, or -1.
int maxout_axis(const Match& m) {
  const std::vector<int> axes = ops::reduced_axes(m.root()->call());
  const ir::Value& x = *m.value("x");
  if (axes.size() != 1 || !is_float(x.dtype())) return -1;
  const Dim& size = x.shape()[static_cast<size_t>(axes[0])];
  return size.is_static() && size.value() >= 1 && size.value() <= kMaxoutPieces ? axes[0] : -1;
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

bool has_no_bound(const Match& m) {
  const ir::Node& root = *m.root();
  const bool bounds = root.op().name == "maximum" || root.op().name == "minimum";
  return !bounds || (!root.constant_input(0) && !root.constant_input(1));
}

double greatest(DType dtype) {
  const int bits = dtype == DType::f64 ? 1024 : dtype == DType::f16 ? 16 : 128;
  return std::ldexp(1 - unit_of(dtype) / 2, bits);
}

const std::vector<RangedRule>& ranged_rules() {
  constexpr auto ordinary = [](const Match&) { return kOrdinary; };
  static const std::vector<RangedRule> rules = {
      {"clamp_from_zero",
       [](const Match& m) { return exact_up_to(m.value("x")->dtype(), hi_of(m)); },
       {"clamp_from_relu", "maximum_with_constant", "minimum_with_constant"}},
      {"maximum_from_relu", ordinary, {}},
      {"minimum_from_relu", ordinary, {}},
      {"prelu_depthwise_branches", branches_within, {}},
      {"prelu_one_branch", finite_products, {}},
      {"prelu_dense_branches", finite_products, {}},
      {"prelu_four_convolutions", finite_products, {}}};
  return rules;
}

const RuleSet& piecewise() {
  static const RuleSet set = {"piecewise",
                              "Piecewise linear functions from relu, smooth ones from their factors.",
                              {clamp_from_zero(), clamp_from_relu(), clamp_below(), clamp_above(), clamp_by_bounds(),
                               relu_by_clamp(), hardsigmoid(), hardswish(), silu(), absolute(), maximum_with_constant(),
                               minimum_with_constant(), maximum(), minimum(), maxout(), minout()}};
  return set;
}

}  // namespace hetnn::passes::legal
