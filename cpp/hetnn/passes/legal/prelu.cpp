// PReLU(x) = max(x, 0) + a·min(x, 0), one slope a channel, in operations that a device without it has.
//
// With d1 = min(a, 1) − 1 and d2 = 1 − max(a, 1), both ≤ 0 and never both non-zero:
//   y = K3·x + K3·relu(K1·x) + K4·relu(K2·x),  K1 = diag(d1), K2 = diag(d2), K3 = diag(1), K4 = diag(−1)
// Where a device adds, K3 is not executed; where it subtracts, K4 neither. The other forms say the same with less.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/passes/legal/bounds.h"
#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
namespace {

// One slope a channel of x.
std::vector<double> slopes_of(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("a"));
  return slopes.size() == 1 ? std::vector<double>(channel_count(*m.value("x")), slopes[0]) : slopes;
}
std::vector<double> map(const std::vector<double>& values, double (*f)(double)) {
  std::vector<double> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), f);
  return out;
}
bool is_all_zero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
}
double first_difference(double a) { return std::min(a, 1.0) - 1; }
double second_difference(double a) { return 1 - std::max(a, 1.0); }

bool slopes_are_finite(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("a"));
  return std::all_of(slopes.begin(), slopes.end(), [](double a) { return std::isfinite(a); });
}
constexpr Guard kFinite = {"the slopes are finite", slopes_are_finite};

Pattern prelu_pattern() { return op("prelu", {any("x"), constant("a")}); }

// K·x for a diagonal K.
using Diagonal = ir::Value* (*)(Build&, ir::Value* x, int axis, std::span<const double>);
ir::Value* by_depthwise(Build& build, ir::Value* x, int axis, std::span<const double> k) {
  return depthwise(build, x, axis, k);
}

bool affords_diagonals(const Match& m, const Build& build) {
  const auto channels = static_cast<int64_t>(channel_count(*m.value("x")));
  return build.affords(m.value("x")->dtype(), std::array{channels, channels});
}

// x + relu(K1 x) − relu(K2 x), leaving out branches that are zero everywhere.
ir::Value* branches(const Match& m, Build& build, Diagonal diagonal) {
  ir::Value* x = m.value("x");
  const int axis = channel_axis(*x);
  const std::vector<double> slopes = slopes_of(m), d1 = map(slopes, first_difference),
                            d2 = map(slopes, second_difference);
  ir::Value* y = x;
  if (!is_all_zero(d1)) y = build.add(y, build.relu(diagonal(build, x, axis, d1)));
  if (!is_all_zero(d2)) y = build.sub(y, build.relu(diagonal(build, x, axis, d2)));
  return y;
}

constexpr std::string_view kCancels =
    "exact in real arithmetic for finite x, which must be known unless all slopes are above 1; errors are of the "
    "rounding of x, not of a x";
constexpr std::string_view kOneCancels =
    "exact in real arithmetic for finite x, which must be known; errors are of the rounding of x, not of a x";
constexpr std::string_view kCancelsAndSpreads =
    "exact in real arithmetic for finite x, which must be known: NaN and inf would spread over the channels of their "
    "pixel through 0 * inf";

Rule four_convolutions() {
  return {.name = "prelu_four_convolutions",
          .equation =
              "prelu(x, a) = K3 x + K3 relu(K1 x) + K4 relu(K2 x), K1 = diag(min(a,1) - 1), "
              "K2 = diag(1 - max(a,1)), K3 = diag(1), K4 = diag(-1), each a full 1x1 convolution",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, kFinite},
          .exactness = kCancelsAndSpreads,
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            if (!affords_diagonals(m, build)) return nullptr;
            ir::Value* x = m.value("x");
            const int axis = channel_axis(*x);
            const std::vector<double> slopes = slopes_of(m), one(slopes.size(), 1), minus(slopes.size(), -1);
            ir::Value* first = build.relu(dense_diagonal(build, x, axis, map(slopes, first_difference)));
            ir::Value* second = build.relu(dense_diagonal(build, x, axis, map(slopes, second_difference)));
            ir::Value* straight = dense_diagonal(build, x, axis, one);
            ir::Value* sum = build.add(straight, dense_diagonal(build, first, axis, one));
            return build.add(sum, dense_diagonal(build, second, axis, minus));
          }};
}

Rule dense_branches() {
  return {.name = "prelu_dense_branches",
          .equation = "prelu(x, a) = x + relu(K1 x) - relu(K2 x), full 1x1 convolutions, zero branches left out",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, kFinite},
          .exactness = kCancelsAndSpreads,
          .rewrite = [](const Match& m, Build& build) {
            return affords_diagonals(m, build) ? branches(m, build, dense_diagonal) : nullptr;
          }};
}

Rule depthwise_branches() {
  return {.name = "prelu_depthwise_branches",
          .equation = "prelu(x, a) = x + relu(K1 x) - relu(K2 x), depthwise 1x1 convolutions, zero branches left out",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, kFinite},
          .exactness = kCancels,
          .rewrite = [](const Match& m, Build& build) { return branches(m, build, by_depthwise); }};
}

Rule one_branch() {
  return {.name = "prelu_one_branch",
          .equation = "prelu(x, a) = x + (1 - a) relu(-x), depthwise 1x1 convolutions: any slopes, one branch",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, kFinite},
          .exactness = kOneCancels,
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const int axis = channel_axis(*x);
            const std::vector<double> slopes = slopes_of(m), minus(slopes.size(), -1);
            ir::Value* negative = build.relu(depthwise(build, x, axis, minus));
            return build.add(x, depthwise(build, negative, axis, map(slopes, [](double a) { return 1 - a; })));
          }};
}

Rule two_sides() {
  return {.name = "prelu_two_sides",
          .equation = "prelu(x, a) = relu(x) + (-a) relu(-x), depthwise 1x1 convolutions",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, kFinite},
          .exactness = "bit for bit (one side is 0), NaN and inf included; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const int axis = channel_axis(*x);
            const std::vector<double> slopes = slopes_of(m), minus(slopes.size(), -1);
            ir::Value* negative = build.relu(depthwise(build, x, axis, minus));
            ir::Value* positive = build.relu(x);
            return build.add(positive, depthwise(build, negative, axis, map(slopes, [](double a) { return -a; })));
          }};
}

bool slopes_have_one_sign(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("a"));
  const auto all = [&](bool (*holds)(double)) { return std::all_of(slopes.begin(), slopes.end(), holds); };
  return all([](double a) { return a > 0; }) || all([](double a) { return a < 0; });
}

Rule two_relus() {
  return {.name = "prelu_two_relus",
          .equation =
              "prelu(x, a) = relu(x) - relu(-a x) where a > 0, relu(x) + relu(a x) where a < 0, a depthwise 1x1 "
              "convolution",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, kFinite, {"all slopes are above 0, or all below", slopes_have_one_sign}},
          .exactness = "bit for bit (one side is 0), NaN and inf included; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const std::vector<double> slopes = slopes_of(m);
            ir::Value* below =
                build.relu(depthwise(build, x, channel_axis(*x), map(slopes, [](double a) { return -std::abs(a); })));
            return slopes.front() > 0 ? build.sub(build.relu(x), below) : build.add(build.relu(x), below);
          }};
}

bool slopes_between(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("a"));
  return std::all_of(slopes.begin(), slopes.end(), [](double a) { return a > 0 && a < 1; });
}

Rule scaled_and_rest() {
  return {.name = "prelu_scaled_and_rest",
          .equation = "prelu(x, a) = a x + relu((1 - a) x), depthwise 1x1 convolutions",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, {"0 < a < 1 for all slopes", slopes_between}},
          .exactness = "within a few roundings, bit for bit where x < 0; NaN and inf as in the original",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const int axis = channel_axis(*x);
            const std::vector<double> slopes = slopes_of(m);
            ir::Value* rest = build.relu(depthwise(build, x, axis, map(slopes, [](double a) { return 1 - a; })));
            return build.add(depthwise(build, x, axis, slopes), rest);
          }};
}

bool slopes_at_most_one(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("a"));
  return std::all_of(slopes.begin(), slopes.end(), [](double a) { return a > 0 && a <= 1; });
}

Rule maximum() {
  return {.name = "prelu_maximum",
          .equation = "prelu(x, a) = max(x, a x)",
          .pattern = prelu_pattern(),
          .guards = {kChannelsFixed, {"0 < a <= 1 for all slopes", slopes_at_most_one}},
          .exactness = "bit for bit, NaN and inf included",
          .rewrite = [](const Match& m, Build& build) {
            ir::Value* x = m.value("x");
            const std::vector<double> slopes = slopes_of(m);
            std::vector<int64_t> shape(static_cast<size_t>(std::max(1, x->rank() - channel_axis(*x))), 1);
            shape[0] = static_cast<int64_t>(slopes.size());
            return build.op("maximum", {x, build.mul(x, build.constant(x->dtype(), shape, slopes))});
          }};
}

Rule leaky_relu() {
  return {.name = "leaky_relu_as_prelu",
          .equation = "leaky_relu(x; a) = prelu(x, a)",
          .pattern = op("leaky_relu", {any("x")}),
          .guards = {kChannelsFixed},
          .exactness = "the slope is rounded to the type of x",
          .rewrite = [](const Match& m, Build& build) {
            const double slope = m.root()->real("negative_slope");
            ir::Value* x = m.value("x");
            return build.op("prelu", {x, build.constant(x->dtype(), {1}, std::span(&slope, 1))});
          }};
}

}  // namespace

double branches_within(const Match& m) {
  const std::vector<double> slopes = to_doubles(*m.tensor("a"));
  const bool grows = std::all_of(slopes.begin(), slopes.end(), [](double a) { return a > 1; });
  return grows ? std::numeric_limits<double>::infinity() : finite_products(m);
}

double finite_products(const Match& m) {
  double factor = 2;
  for (double a : to_doubles(*m.tensor("a"))) factor = std::max(factor, 2 * (1 + std::abs(a)));
  return greatest(m.value("x")->dtype()) / factor;
}

const RuleSet& prelu() {
  static const RuleSet set = {"prelu",
                              "PReLU and LeakyReLU from convolutions, relu and addition, or a maximum.",
                              {leaky_relu(), maximum(), depthwise_branches(), two_relus(), scaled_and_rest(),
                               one_branch(), two_sides(), dense_branches(), four_convolutions()}};
  return set;
}

}  // namespace hetnn::passes::legal
