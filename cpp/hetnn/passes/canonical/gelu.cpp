// GELU written out: x / 2 (1 + erf(x / sqrt 2)), or with tanh, in the orders in which models multiply.
#include <cmath>

#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes::canonical {
namespace {

// Those that are no fractions are as exact as f32.
bool near(std::optional<double> found, double value) { return found && std::abs(*found - value) <= 1e-6 * value; }
bool is_near(const Match& m, std::string_view capture, double value) {
  return near(single_value(*m.tensor(capture)), value);
}
bool is_number(const Match& m, std::string_view capture, double value) {
  return single_value(*m.tensor(capture)) == value;
}

constexpr Guard kErfConstants = {"the constants are 1/2, 1 and sqrt 2 (or its inverse, as a factor)",
                                 [](const Match& m) {
                                   return is_number(m, "half", 0.5) && is_number(m, "one", 1) &&
                                          near(factor_of(*m.node("scaled"), *m.tensor("s")), M_SQRT1_2);
                                 }};
constexpr Guard kTanhConstants = {"the constants are 1/2, 1, sqrt(2/pi), 0.044715 and 3", [](const Match& m) {
                                    return is_number(m, "half", 0.5) && is_number(m, "one", 1) &&
                                           is_near(m, "s", std::sqrt(2 / M_PI)) && is_near(m, "a", 0.044715) &&
                                           is_number(m, "three", 3);
                                  }};

Pattern erf_factor() {
  return op("add", {op("erf", {one_of({"div", "mul"}, {any("x"), constant("s")}, "scaled")}), constant("one")});
}
Pattern tanh_factor() {
  const Pattern cube = op("mul", {op("pow", {any("x"), constant("three")}), constant("a")});
  return op("add", {op("tanh", {op("mul", {op("add", {any("x"), cube}), constant("s")})}), constant("one")});
}

template <bool kTanh>
ir::Value* gelu(const Match& m, Build& build) {
  return build.op("gelu", {m.value("x")}, {{"approximate", std::string(kTanh ? "tanh" : "none")}});
}

template <bool kTanh>
Rule rule(std::string_view name, std::string_view equation, Pattern pattern) {
  return {.name = name,
          .equation = equation,
          .pattern = std::move(pattern),
          .guards = {kFloat, kShapedLikeX, kTanh ? kTanhConstants : kErfConstants},
          .exactness = "within a few roundings of x",
          .rewrite = gelu<kTanh>};
}

// (x / 2) f, (x f) / 2 and x (f / 2).
Pattern half_first(Pattern f) { return op("mul", {op("mul", {any("x"), constant("half")}), std::move(f)}); }
Pattern half_last(Pattern f) { return op("mul", {op("mul", {any("x"), std::move(f)}), constant("half")}); }
Pattern half_inside(Pattern f) { return op("mul", {any("x"), op("mul", {std::move(f), constant("half")})}); }

}  // namespace

std::vector<Rule> gelu_rules() {
  return {
      rule<false>("gelu_from_erf_half_first", "(x 1/2) (erf(x / sqrt 2) + 1) = gelu(x)", half_first(erf_factor())),
      rule<false>("gelu_from_erf_half_last", "x (erf(x / sqrt 2) + 1) 1/2 = gelu(x)", half_last(erf_factor())),
      rule<false>("gelu_from_erf_half_inside", "x ((erf(x / sqrt 2) + 1) 1/2) = gelu(x)", half_inside(erf_factor())),
      rule<true>("gelu_from_tanh_half_first", "(x 1/2) (tanh(sqrt(2/pi) (x + 0.044715 x^3)) + 1) = gelu(x; tanh)",
                 half_first(tanh_factor())),
      rule<true>("gelu_from_tanh_half_last", "x (tanh(sqrt(2/pi) (x + 0.044715 x^3)) + 1) 1/2 = gelu(x; tanh)",
                 half_last(tanh_factor())),
      rule<true>("gelu_from_tanh_half_inside", "x ((tanh(sqrt(2/pi) (x + 0.044715 x^3)) + 1) 1/2) = gelu(x; tanh)",
                 half_inside(tanh_factor()))};
}

}  // namespace hetnn::passes::canonical
