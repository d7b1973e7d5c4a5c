// Canonicalization to a fixpoint of folding, rules and merging.
#include "hetnn/passes/canonicalize.h"

#include <iterator>

#include "hetnn/ir/rewriter.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/fold_constants.h"
#include "hetnn/passes/merge_common.h"

namespace hetnn::passes {

const std::vector<const RuleSet*>& canonical_rule_sets() {
  static const std::vector<const RuleSet*> sets = {&canonical::quantized(),   &canonical::blocks(),
                                                   &canonical::identities(),  &canonical::movement(),
                                                   &canonical::activations(), &canonical::weights()};
  return sets;
}

std::vector<Firing> canonicalize(ir::Graph& graph, const CanonicalForm& form) {
  ApplyOptions options;
  options.deterministic = form.deterministic;
  std::vector<Firing> fired;
  const std::vector<const RuleSet*> without_weights = {&canonical::quantized(), &canonical::blocks(),
                                                       &canonical::identities(), &canonical::movement(),
                                                       &canonical::activations()};
  ir::Rewriter(graph).erase_dead();
  // Before folding makes reals of the integers of weights.
  fold_constants(graph, {.dequantized = false});
  fired = apply_rules(graph, without_weights, options);
  if (form.real_sums && !form.deterministic) {
    // What no conversion takes by now, stays real.
    std::vector<Firing> sums = apply_rules(graph, {&canonical::real_sums()}, options);
    fired.insert(fired.end(), std::make_move_iterator(sums.begin()), std::make_move_iterator(sums.end()));
  }
  for (;;) {
    const size_t folded = fold_constants(graph), merged = merge_common(graph);
    size_t fired_now = 0;
    // Compositions are recognized before weights swallow their first and last steps.
    for (const auto& sets : {without_weights, canonical_rule_sets()}) {
      std::vector<Firing> round = apply_rules(graph, sets, options);
      fired_now += round.size();
      fired.insert(fired.end(), std::make_move_iterator(round.begin()), std::make_move_iterator(round.end()));
    }
    if (fired_now + folded + merged == 0) break;
  }
  ir::Rewriter(graph).erase_dead();
  if (graph.stage < ir::Stage::canonical) graph.stage = ir::Stage::canonical;
  return fired;
}

}  // namespace hetnn::passes
