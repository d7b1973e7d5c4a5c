// The rule sets of canonicalization, one a file.
#pragma once

#include <vector>

#include "hetnn/passes/numbers.h"
#include "hetnn/passes/rule.h"

namespace hetnn::passes::canonical {

/// Conversions around layers become the types of their values.
const RuleSet& quantized();
/// Layers that read integers and whose result stays real; for devices that have them.
const RuleSet& real_sums();
/// Images that grow; part of the above.
Rule bilinear_of_integers();
/// Layers with slopes behind them; part of the above.
Rule slopes_of_integers();
/// Weights in blocks with a scale each are multiplied by as they are kept.
const RuleSet& blocks();
/// x·1, x−0, double activations, bounds that say nothing.
const RuleSet& identities();
/// Reshapes, permutations, slices and their kin that do nothing or follow one another.
const RuleSet& movement();
/// Compositions that are one operator, and operators that are a case of another.
const RuleSet& activations();
/// GELU written out, in the orders in which models multiply; part of the above.
std::vector<Rule> gelu_rules();
/// Piecewise linear activations chosen by `where`; part of the above.
std::vector<Rule> piece_rules();
/// Batch norms, biases, scales and paddings folded into the weights of convolutions and linear layers.
const RuleSet& weights();

inline constexpr Guard kFloat = {"the values are real",
                                 [](const Match& m) { return has_arithmetic(m.root()->output()->dtype()); }};
inline constexpr Guard kShapedLikeX = {
    "the result has the type of x", [](const Match& m) { return m.value("x")->type() == m.root()->output()->type(); }};

/// The number by which a node `x c` or `x / c` multiplies; nullopt when c is no number.
inline std::optional<double> factor_of(const ir::Node& product_or_quotient, const Tensor& c) {
  const std::optional<double> value = single_value(c);
  const bool product = product_or_quotient.op().has(ops::Trait::commutative);
  return !value || product ? value : 1 / *value;
}

}  // namespace hetnn::passes::canonical
