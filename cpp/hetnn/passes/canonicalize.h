// Canonicalization: one way to say each thing, and nothing said that need not be.
#pragma once

#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/passes/apply_rules.h"

namespace hetnn::passes {

struct CanonicalForm {
  /// Layers between conversions stay layers of reals where integers would round otherwise.
  bool deterministic = false;
  /// Layers that read integers and whose result stays real become layers of integers with such a result. Not every
  /// device that computes on reals has these.
  bool real_sums = false;
};

/// Folds constants, applies the canonical rule sets, merges what is computed twice and removes what nobody reads,
/// until nothing changes. The stage becomes canonical. Returns what fired, in order. On an error the graph is valid,
/// as it was before the rule that threw.
std::vector<Firing> canonicalize(ir::Graph& graph, const CanonicalForm& form = {});

/// The rule sets that canonicalize applies, whatever the form.
const std::vector<const RuleSet*>& canonical_rule_sets();

}  // namespace hetnn::passes
