// Says what each rewriting is worth: against the best plan of the model as it was written.
#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void price_rewrites(Draft& draft) {
  if (draft.rewrites.empty()) return;
  const plan::NetworkPlan without = plan::plan_network(draft.canonical, draft.target, draft.network);
  plan::add_worth(without, draft.plan, draft.rewrites);
  draft.rewriting = plan::rewriting_totals(without, draft.plan);
}

}  // namespace hetnn::pipeline
