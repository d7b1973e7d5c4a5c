// The choice among rewrites by the cost of the plan.
#include <algorithm>
#include <iterator>
#include <map>

#include "hetnn/passes/legalizer.h"

namespace hetnn::passes {

std::optional<RewriteMode> rewrite_mode_from_name(std::string_view name) {
  if (name == "off") return RewriteMode::off;
  if (name == "auto") return RewriteMode::automatic;
  if (name == "always") return RewriteMode::always;
  return std::nullopt;
}

namespace {

// Nodes that are left out together.
using Unit = std::vector<std::string>;

// One rewriting each, or those of one kind: the same form of the same layer. What does not pay at the end of a chain
// comes first.
std::vector<Unit> units_of(const std::vector<report::RewriteRow>& rewrites, bool by_kind) {
  std::vector<Unit> out;
  std::map<std::pair<std::string, std::string>, size_t> kinds;
  for (auto row = rewrites.rbegin(); row != rewrites.rend(); ++row) {
    const auto kind = by_kind ? std::pair(row->form, row->why) : std::pair(row->node, std::string());
    const auto [at, is_new] = kinds.emplace(kind, out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(row->node);
  }
  return out;
}

Unit not_yet(const std::set<std::string, std::less<>>& excluded, const Unit& unit) {
  Unit out;
  std::copy_if(unit.begin(), unit.end(), std::back_inserter(out),
               [&](const std::string& node) { return !excluded.contains(node); });
  return out;
}

// Plans of a graph of so many nodes: as many as are asked for, or as take about the time of these of 2,000 nodes.
int plans_within_time(const ir::Graph& graph, int most) {
  constexpr int kNodes = 2000, kLeast = 2;
  const auto nodes = static_cast<int>(graph.nodes().size());
  return nodes <= kNodes ? most : std::clamp(most * kNodes / nodes, std::min(kLeast, most), most);
}

}  // namespace

ChosenRewrites choose_rewrites(const ir::Graph& canonical, const Oracle& oracle, RewriteMode mode,
                               const std::function<double()>& without_us, const PlanRewrites& plan,
                               LegalizeOptions options, int max_plans) {
  const auto as_written = [&] {
    ir::Graph plain = canonical.clone();
    if (plain.stage < ir::Stage::legal) plain.stage = ir::Stage::legal;
    const double cost_us = without_us();
    return ChosenRewrites{std::move(plain), {}, {}, {}, cost_us, cost_us};
  };
  if (mode == RewriteMode::off) return as_written();

  Legalizer legalizer(oracle, options, canonical.symbols);
  int plans_left = plans_within_time(canonical, max_plans);
  const auto attempt = [&] {
    ChosenRewrites out{canonical.clone(), {}, {}, {}, 0, 0};
    out.taken = legalizer.run(out.graph);
    if (out.taken.empty()) return std::pair(as_written(), std::set<std::string, std::less<>>());
    PlannedRewrites planned = plan(out.graph, out.taken);
    out.cost_us = planned.cost_us;
    --plans_left;
    return std::pair(std::move(out), std::move(planned.doubtful));
  };
  const auto with_reasons = [&](ChosenRewrites chosen) {
    chosen.out_of_range = legalizer.out_of_range();
    return chosen;
  };
  auto [current, doubtful] = attempt();
  const std::vector<report::RewriteRow> possible = current.taken;
  if (possible.empty()) return with_reasons(std::move(current));
  if (mode == RewriteMode::always) {
    current.cost_without_us = without_us();
    return with_reasons(std::move(current));
  }
  std::vector<Unit> units = units_of(possible, true);
  const std::vector<Unit> single = units_of(possible, false);
  units.insert(units.end(), single.begin(), single.end());
  for (const Unit& unit : possible.size() > static_cast<size_t>(plans_left) ? units : single) {
    if (plans_left == 0) break;
    const Unit fresh = not_yet(options.excluded_nodes, unit);
    if (fresh.empty() || fresh.size() == current.taken.size()) continue;  // as it is, or without any: known
    if (fresh.size() == 1 && !doubtful.contains(fresh.front())) continue;
    options.excluded_nodes.insert(fresh.begin(), fresh.end());
    auto [without, still_doubtful] = attempt();
    if (without.cost_us < current.cost_us) {
      current = std::move(without);
      doubtful = std::move(still_doubtful);
    } else {
      for (const std::string& node : fresh) options.excluded_nodes.erase(node);
    }
  }
  ChosenRewrites best = as_written();
  if (current.cost_us <= best.cost_us) {
    current.cost_without_us = best.cost_without_us;
    best = std::move(current);
  }
  for (const report::RewriteRow& rewrite : possible) {
    const bool taken = std::any_of(best.taken.begin(), best.taken.end(),
                                   [&](const report::RewriteRow& other) { return other.node == rewrite.node; });
    if (!taken) best.refused.push_back(rewrite);
  }
  return with_reasons(std::move(best));
}

}  // namespace hetnn::passes
