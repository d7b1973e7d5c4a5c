// Canonicalization: one way to say each thing, and nothing said that need not be.
#pragma once

#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/passes/apply_rules.h"

namespace hetnn::passes {

/// Folds constants, applies the canonical rule sets, merges what is computed twice and removes what nobody reads,
/// until nothing changes. The stage becomes canonical. Returns what fired, in order. On an error the graph is valid,
/// as it was before the rule that threw. `deterministic`: layers between conversions stay layers of reals where
/// integers would round otherwise.
std::vector<Firing> canonicalize(ir::Graph& graph, bool deterministic = false);

/// The rule sets that canonicalize applies.
const std::vector<const RuleSet*>& canonical_rule_sets();

}  // namespace hetnn::passes
