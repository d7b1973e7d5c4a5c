// Elementwise nodes that change nothing, and pairs of which one is enough.
#include <algorithm>
#include <cmath>

#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::canonical {
namespace {

constexpr std::string_view kBits = "bit for bit, NaN, inf and -0 included";

bool keeps_type(const Match& m) { return m.value("x")->type() == m.root()->output()->type(); }
constexpr Guard kKeepsType = {"the result has the type of x", keeps_type};

// x + 0 turns -0 into 0, so for floats only x + (-0) is the identity.
bool adds_nothing(const Match& m) {
  const Tensor& c = *m.tensor("c");
  return all_equal(c, is_float(c.dtype()) ? -0.0 : 0.0);
}
bool is_plus_zero(const Match& m) { return all_equal(*m.tensor("c"), 0.0); }
bool is_one(const Match& m) { return all_equal(*m.tensor("c"), 1.0); }
ir::Value* keep_x(const Match& m, Build&) { return m.value("x"); }

Rule same(std::string_view name, std::string_view equation, Pattern pattern, std::vector<Guard> guards) {
  return {.name = name,
          .equation = equation,
          .pattern = std::move(pattern),
          .guards = std::move(guards),
          .exactness = kBits,
          .rewrite = keep_x};
}

// Bounds of a clamp; absent ones are infinite.
struct Bounds {
  double lo, hi;
};
Bounds bounds_of(const ir::Node& node) { return {node.real("min"), node.real("max")}; }
bool deterministic(const ir::Node& node) { return node.real("min") <= node.real("max"); }

ir::Value* clamp(Build& build, ir::Value* x, Bounds bounds) {
  return build.op("clamp", {x}, {{"min", bounds.lo}, {"max", bounds.hi}});
}

Rule clamp_of_clamp() {
  return {.name = "clamp_of_clamp",
          .equation = "clamp(clamp(x, a, b), c, d) = clamp(x, clamp(a, c, d), clamp(b, c, d))",
          .pattern = op("clamp", {op("clamp", {any("x")}, "inner")}),
          .guards = {{"the bounds of each are in order",
                      [](const Match& m) { return deterministic(*m.root()) && deterministic(*m.node("inner")); }}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            const Bounds inner = bounds_of(*m.node("inner")), outer = bounds_of(*m.root());
            return clamp(build, m.value("x"),
                         {std::clamp(inner.lo, outer.lo, outer.hi), std::clamp(inner.hi, outer.lo, outer.hi)});
          }};
}

Rule clamp_of_relu() {
  return {.name = "clamp_of_relu",
          .equation = "clamp(relu(x), a, b) = clamp(x, max(a, 0), max(b, 0))",
          .pattern = op("clamp", {op("relu", {any("x")})}),
          .guards = {{"the bounds are in order and b >= 0",
                      [](const Match& m) { return deterministic(*m.root()) && m.root()->real("max") >= 0; }}},
          .exactness = "equal; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            return clamp(build, m.value("x"), {std::max(m.root()->real("min"), 0.0), m.root()->real("max")});
          }};
}

Rule relu_of_clamp() {
  return {.name = "relu_of_clamp",
          .equation = "relu(clamp(x, a, b)) = clamp(x, max(a, 0), max(b, 0))",
          .pattern = op("relu", {op("clamp", {any("x")}, "inner")}),
          .guards = {{"the bounds are in order", [](const Match& m) { return deterministic(*m.node("inner")); }}},
          .exactness = "equal; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) {
            const Bounds inner = bounds_of(*m.node("inner"));
            return clamp(build, m.value("x"), {std::max(inner.lo, 0.0), std::max(inner.hi, 0.0)});
          }};
}

Rule clamp_as_relu() {
  return {.name = "clamp_as_relu",
          .equation = "clamp(x, 0, inf) = relu(x)",
          .pattern = op("clamp", {any("x")}),
          .guards = {{"the bounds are 0 and inf",
                      [](const Match& m) { return m.root()->real("min") == 0 && m.root()->real("max") == INFINITY; }}},
          .exactness = "equal; a zero may change its sign",
          .rewrite = [](const Match& m, Build& build) { return build.relu(m.value("x")); }};
}

Rule clamp_without_bounds() {
  return same("clamp_without_bounds", "clamp(x, -inf, inf) = x", op("clamp", {any("x")}),
              {{"both bounds are infinite", [](const Match& m) {
                  return m.root()->real("min") == -INFINITY && m.root()->real("max") == INFINITY;
                }}});
}

Rule keep_inner(std::string_view name, std::string_view equation, Pattern pattern) {
  return {.name = name,
          .equation = equation,
          .pattern = std::move(pattern),
          .guards = {},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build&) { return m.value("inner"); }};
}

}  // namespace

const RuleSet& identities() {
  static const RuleSet set = {
      "identities",
      "Elementwise nodes that change nothing, and pairs of which one is enough.",
      {same("add_nothing", "x + (-0) = x", op("add", {any("x"), constant("c")}),
            {{"c is -0 everywhere (0 for integers)", adds_nothing}, kKeepsType}),
       same("subtract_nothing", "x - 0 = x", op("sub", {any("x"), constant("c")}),
            {{"c is +0 everywhere", is_plus_zero}, kKeepsType}),
       same("multiply_by_one", "x 1 = x", op("mul", {any("x"), constant("c")}),
            {{"c is 1 everywhere", is_one}, kKeepsType}),
       same("divide_by_one", "x / 1 = x", op("div", {any("x"), constant("c")}),
            {{"c is 1 everywhere", is_one}, kKeepsType}),
       same("power_of_one", "x^1 = x", op("pow", {any("x"), constant("c")}),
            {{"c is 1 everywhere", is_one}, kKeepsType}),
       same("negate_twice", "-(-x) = x", op("neg", {op("neg", {any("x")})}), {}),
       keep_inner("relu_twice", "relu(relu(x)) = relu(x)", op("relu", {op("relu", {any("x")}, "inner")})),
       keep_inner("abs_twice", "|(|x|)| = |x|", op("abs", {op("abs", {any("x")}, "inner")})), clamp_without_bounds(),
       clamp_as_relu(), clamp_of_clamp(), clamp_of_relu(), relu_of_clamp()}};
  return set;
}

}  // namespace hetnn::passes::canonical
