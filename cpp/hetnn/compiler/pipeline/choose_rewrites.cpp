// Rewrites nodes that accelerators lack, where that makes the whole plan cheaper (or as the options say).
#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <limits>
#include <optional>

#include "hetnn/base/interrupt.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/passes/legalize.h"

namespace hetnn::pipeline {
namespace {

// Nodes that the user wants on the general processor: rewriting them for another device would be against the wish.
std::set<std::string, std::less<>> pinned_to_general(const Draft& draft) {
  std::set<std::string, std::less<>> out;
  if (draft.network.pins.empty()) return out;
  const plan::NetworkPlan described = plan::describe_network(draft.graph, draft.target, draft.network);
  for (size_t k = 0; k < described.nodes.size(); ++k) {
    if (described.problem.pins[k].device == 0) out.insert(described.nodes[k]->name());
  }
  return out;
}

// Nodes whose sizes depend on values run on the general processor, whatever they are rewritten into.
void keep_sizes_from_values(const ir::Graph& graph, std::set<std::string, std::less<>>& kept) {
  const auto definers = ir::definers(graph);
  if (definers.empty()) return;
  for (const ir::Node* node : graph.nodes()) {
    std::set<std::string> needed;
    ops::collect_needed_symbols(node->call(), needed);
    if (std::any_of(needed.begin(), needed.end(), [&](const std::string& s) { return definers.contains(s); }))
      kept.insert(node->name());
  }
}

// The best plan, if pins or a strict device leave one.
using Plan = std::optional<plan::NetworkPlan>;
Plan best_plan(const Draft& draft, const ir::Graph& graph) {
  try {
    return plan::plan_network(graph, draft.target, draft.network);
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

// The plan of the model as it is written, found beside other work, which ends where nobody waits for it any more.
class PlanBeside {
 public:
  explicit PlanBeside(const Draft& draft)
      : found_(std::async(std::launch::async, [this, &draft] {
          struct GivenUp {};
          const InterruptScope scope([this] {
            if (given_up_) throw GivenUp();
          });
          return best_plan(draft, draft.canonical);
        })) {}
  ~PlanBeside() { given_up_ = true; }
  PlanBeside(const PlanBeside&) = delete;
  PlanBeside& operator=(const PlanBeside&) = delete;

  /// Into `plan`, the first time.
  const Plan& put_into(Plan& plan) {
    if (found_.valid()) plan = found_.get();
    return plan;
  }

 private:
  std::atomic<bool> given_up_ = false;
  std::future<Plan> found_;  // whose end waits for the other thread
};

// Infinite where there is none, which a rewriting may mend.
double cost_us(const Plan& plan) { return plan ? plan->result.cost_us : std::numeric_limits<double>::infinity(); }

passes::PlannedRewrites plan_rewrites(const Draft& draft, const std::function<const Plan&()>& as_written,
                                      const ir::Graph& legal, std::vector<report::RewriteRow> rewrites) {
  const Plan planned = best_plan(draft, legal);
  passes::PlannedRewrites out{cost_us(planned), {}};
  const Plan& without = as_written();
  if (planned && without) {
    plan::add_worth(*without, *planned, rewrites);
    out.doubtful = plan::doubtful_rewrites(*planned, rewrites);
  } else {
    for (const report::RewriteRow& row : rewrites) out.doubtful.insert(row.node);
  }
  return out;
}

}  // namespace

void choose_rewrites(Draft& draft) {
  draft.canonical = draft.graph.clone();
  if (draft.target.devices.size() > 1 && draft.options.rewrite != passes::RewriteMode::off) {
    draft.kept_as_written = pinned_to_general(draft);
    keep_sizes_from_values(draft.graph, draft.kept_as_written);
    PlanBeside beside(draft);
    const auto as_written = [&]() -> const Plan& { return beside.put_into(draft.as_written); };
    passes::ChosenRewrites chosen = passes::choose_rewrites(
        draft.graph, passes::accelerators(draft.target, draft.graph.hints()), draft.options.rewrite,
        [&] { return cost_us(as_written()); },
        [&](const ir::Graph& legal, const auto& rewrites) { return plan_rewrites(draft, as_written, legal, rewrites); },
        draft.legalize_options());
    for (const report::RewriteRow& rewrite : chosen.refused) draft.kept_as_written.insert(rewrite.node);
    draft.rewrites = std::move(chosen.taken);
    draft.out_of_range = std::move(chosen.out_of_range);
    draft.graph = std::move(chosen.graph);
    copy_outputs(draft);  // a form may be an input itself, as where all slopes are 1
  }
  draft.graph.stage = ir::Stage::legal;
}

}  // namespace hetnn::pipeline
