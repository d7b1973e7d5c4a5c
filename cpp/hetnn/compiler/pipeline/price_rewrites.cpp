// Says what each rewriting is worth: against the best plan of the model as it was written.
#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {
namespace {

// Where pins or a strict device leave the model as it was written no plan, the best one without these demands.
plan::NetworkPlan plan_as_written(const Draft& draft) {
  try {
    return plan::plan_network(draft.canonical, draft.target, draft.network);
  } catch (const Unsupported&) {
    plan::NetworkOptions wishes = draft.network;
    wishes.partition.strict.clear();
    for (plan::NodeRule& pin : wishes.pins) pin.hard = false;
    return plan::plan_network(draft.canonical, draft.target, wishes);
  }
}

}  // namespace

void price_rewrites(Draft& draft) {
  if (draft.rewrites.empty()) return;
  const plan::NetworkPlan without = plan_as_written(draft);
  plan::add_worth(without, draft.plan, draft.rewrites);
  draft.rewriting = plan::rewriting_totals(without, draft.plan);
}

}  // namespace hetnn::pipeline
