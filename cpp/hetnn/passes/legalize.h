// Legalization: nodes that a device lacks are expanded into ones it has, the cheapest way the rules allow.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/passes/rule.h"
#include "hetnn/passes/value_ranges.h"
#include "hetnn/report/report.h"
#include "hetnn/target/target.h"

namespace hetnn::passes {

/// What legalization asks of the devices that nodes shall become legal on.
struct Oracle {
  std::function<bool(const ir::Node&)> supports;
  std::function<double(const ir::Node&)> time_us;  // of a supported node by itself
  /// Whether some node may give results of the type; empty: nothing is known.
  std::function<bool(DType)> gives = {};
  /// No node that reads so many bytes of constants takes less; empty: nothing is known.
  std::function<double(int64_t)> least_us = {};
};

/// Any device of the target but the first, which is the general processor; the time of the fastest that supports.
Oracle accelerators(const target::Target& target, const Bindings& bindings);

struct LegalizeOptions {
  std::vector<std::string> disabled_rules = {};
  /// Names of nodes that stay as they are.
  std::set<std::string, std::less<>> excluded_nodes = {};
  /// For forms that hold in a range alone.
  Magnitudes inputs_within = {};
  /// Expansions within expansions at most.
  int max_depth = 6;
  /// Right sides tried for one node at most; beyond that the best one found so far is taken.
  int max_trials = 400;
  /// Bytes of a constant that a right side may make. A form that needs a larger one is not tried.
  int64_t max_constant_bytes = int64_t{128} << 20;
};

/// InvalidModel, with the nearest names there are, for a name of no rule that legalization could leave out.
void check_disabled_rules(const std::vector<std::string>& names);

/// Expands every unsupported node that the rules can make wholly legal. For each node the search tries every rule at
/// it, then recursively at the nodes of its right side, no rule twice on one path, and keeps the cheapest by `oracle`;
/// ties go to the earlier rule. Then folds neighbouring convolutions together where that stays legal and is cheaper.
/// Nodes for which there is no wholly legal expansion stay, and those whose result is empty. The stage becomes legal.
/// Deterministic. InvalidModel as check_disabled_rules. A row for each node made legal, without what only plans know.
std::vector<report::RewriteRow> legalize(ir::Graph& graph, const Oracle& oracle, const LegalizeOptions& options = {});

enum class RewriteMode : uint8_t { off, automatic, always };
/// off, auto, always.
std::optional<RewriteMode> rewrite_mode_from_name(std::string_view name);

/// A node that a rule would have made legal if nothing it reads were larger than `within`.
struct OutOfRange {
  std::string node, rule;
  double within = 0;
  double largest = 0;  // that it may read
};

struct ChosenRewrites {
  ir::Graph graph;
  std::vector<report::RewriteRow> taken;
  std::vector<report::RewriteRow> refused;  // would have been legal, but the plan is cheaper without
  std::vector<OutOfRange> out_of_range;
  double cost_without_us = 0;  // of the plan without any rewrite
  double cost_us = 0;          // of the plan of `graph`
};

/// What planning says of a graph with rewrites: its best plan's time, and the rewritten nodes that a better plan may
/// leave as they were.
struct PlannedRewrites {
  double cost_us = 0;
  std::set<std::string, std::less<>> doubtful;
};
using PlanRewrites = std::function<PlannedRewrites(const ir::Graph&, const std::vector<report::RewriteRow>&)>;

/// Picks the rewrites by the cost of the whole plan. off: none; always: all; automatic: the cheapest among none, which
/// costs what `without_us` says at last, all, and all but some, found by leaving out one doubtful rewrite after the
/// other, where they are many one kind after the other first: at most `max_plans` plans, fewer of a graph of thousands
/// of nodes. Where nothing is to be rewritten, nothing is planned.
ChosenRewrites choose_rewrites(const ir::Graph& canonical, const Oracle& oracle, RewriteMode mode,
                               const std::function<double()>& without_us, const PlanRewrites& plan,
                               LegalizeOptions options = {}, int max_plans = 24);

}  // namespace hetnn::passes
