// The rule sets of canonicalisation, one a file.
#pragma once

#include "hetnn/passes/rule.h"

namespace hetnn::passes::canonical {

/// x·1, x−0, double activations, bounds that say nothing.
const RuleSet& identities();
/// Reshapes, permutations, slices and their kin that do nothing or follow one another.
const RuleSet& movement();
/// Compositions that are one operator, and operators that are a case of another.
const RuleSet& activations();
/// Batch norms, biases, scales and paddings folded into the weights of convolutions and linear layers.
const RuleSet& weights();

}  // namespace hetnn::passes::canonical
