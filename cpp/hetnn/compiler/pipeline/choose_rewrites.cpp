// Rewrites nodes that accelerators lack, where that makes the whole plan cheaper (or as the options say).
#include <algorithm>
#include <functional>
#include <future>
#include <limits>
#include <optional>

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
    // Beside the first plan with rewrites.
    std::future<Plan> found = std::async(std::launch::async, [&draft] { return best_plan(draft, draft.canonical); });
    const auto as_written = [&]() -> const Plan& {
      if (found.valid()) draft.as_written = found.get();
      return draft.as_written;
    };
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
