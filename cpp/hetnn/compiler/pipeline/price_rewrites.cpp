// Says what each rewriting is worth: against the best plan of the model as it was written.
#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {
namespace {

// Where pins or a strict device leave the model as it was written no plan, the best one without these demands.
plan::NetworkPlan plan_of_wishes(const Draft& draft) {
  plan::NetworkOptions wishes = draft.network;
  wishes.partition.strict.clear();
  for (plan::NodeRule& pin : wishes.pins) pin.hard = false;
  return plan::plan_network(draft.canonical, draft.target, wishes);
}

}  // namespace

void price_rewrites(Draft& draft) {
  if (draft.rewrites.empty()) return;
  if (!draft.as_written) draft.as_written = plan_of_wishes(draft);
  plan::add_worth(*draft.as_written, draft.plan, draft.rewrites);
  draft.rewriting = plan::rewriting_totals(*draft.as_written, draft.plan);
}

}  // namespace hetnn::pipeline
