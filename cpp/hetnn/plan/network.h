// Planning a network: from a graph and a target to a planning problem, and from its plan back to the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/plan/cut.h"
#include "hetnn/plan/partition/strategies/partition.h"
#include "hetnn/report/report.h"
#include "hetnn/target/target.h"

namespace hetnn::plan {

/// A device and every node that matches: its name, a regular expression over names and module paths, its operator, or
/// a module path and all below it.
struct NodeRule {
  enum class By : uint8_t { name, regex, op, module };
  By by = By::name;
  std::string pattern;
  std::string device;
  bool hard = true;  // of a pin
};

struct NetworkOptions {
  Options partition;
  /// Wishes for the device of nodes.
  std::vector<NodeRule> pins;
  /// Results that may not leave the device, beside those that it does not give away anyhow.
  std::vector<NodeRule> non_exportable = {};
  /// Times that replace predictions: [node name][device], in µs (measured ones, say).
  std::map<std::string, std::map<std::string, double>> measured_us;
  /// Most bytes of constants on a device, by its name; the smaller of this and the device's own bound counts.
  std::map<std::string, double> memory_budget_bytes;
  /// Nodes that a device would compute together share the time of that; `deterministic`: where every rounding is kept.
  bool fusion = true;
  bool deterministic = false;
};

/// A plan and all it was made from. `nodes` point into the planned graph, which must outlive the plan unchanged.
struct NetworkPlan {
  const target::Target* target = nullptr;
  std::vector<ir::Node*> nodes;                       // every node but constants; the problem's node k is nodes[k]
  std::vector<std::vector<target::Support>> support;  // [node][device]
  Problem problem;
  PartitionResult result;
  int64_t measured_nodes = 0;       // with a measured time on some device
  std::set<std::string> rules_met;  // patterns that a node matches, of pins and of results that may not leave

  /// The index of the node of that name. InvalidModel naming the closest when there is none.
  size_t index_of(std::string_view node) const;
};

/// InvalidModel for the first rule that no node matches.
void require_rules(const NetworkOptions& options, const std::set<std::string>& met);

/// The planning problem of `graph` (canonical or legal) with every device's answers, and no plan yet. InvalidModel
/// where a pin or a budget names no device.
NetworkPlan describe_network(const ir::Graph& graph, const target::Target& target, const NetworkOptions& options);

/// What a device's backend says of one subgraph: nothing, or the reason why it refuses it, and the node at fault (empty
/// where the subgraph as a whole is too much).
struct SubgraphRefusal {
  std::string reason;
  std::string node;
};
/// Asked for each accelerator subgraph of a plan.
using SubgraphTrial = std::function<std::optional<SubgraphRefusal>(const Subgraph&)>;

/// Plans `graph` (canonical or legal). Throws Unsupported with every node that no device takes and all reasons, and
/// whatever `partition` throws. InvalidModel for a pin that names no device. With a `trial` the plan
/// is repaired until every accelerator subgraph passes: a node at fault leaves the device, and its answer about the
/// node becomes a no with that reason; a subgraph refused as a whole is split. The notes say what was done. DoesNotFit
/// when a refused node can run nowhere else.
NetworkPlan plan_network(const ir::Graph& graph, const target::Target& target, const NetworkOptions& options,
                         const SubgraphTrial& trial = {});

/// Cuts the planned graph by its plan.
void apply(const NetworkPlan& plan, ir::Graph& graph);

/// Fills in all figures of `rows` but predicted_us_after. `before` describes the graph before it was rewritten, `plan`
/// is that of the graph afterwards.
void add_worth(const NetworkPlan& before, const NetworkPlan& plan, std::vector<report::RewriteRow>& rows);
/// Of `rows`, whose figures are filled in: the nodes whose rewriting may not pay. What took their place runs on the
/// general processor, or is worth little where everything else stays as it is.
std::set<std::string, std::less<>> doubtful_rewrites(const NetworkPlan& plan,
                                                     const std::vector<report::RewriteRow>& rows);
/// `without` is the plan without any rewriting.
report::RewritingTotals rewriting_totals(const NetworkPlan& without, const NetworkPlan& plan);

/// The report but for what was rewritten and fused. `predicted_us` counts transfers and launches.
report::Report report_of(const NetworkPlan& plan, const ir::Graph& graph, std::string_view strategy);

/// Why the node is where it is: device, cost here and elsewhere, reasons, and the change that would move it.
report::WhyRow why_row(const NetworkPlan& plan, std::string_view node);

/// Every node that no accelerator takes, with all reasons of each of them; `device` is none where the general processor
/// does not take it either. Needs no plan, only the problem.
std::vector<report::NodeRow> unsupported_nodes(const NetworkPlan& plan);

}  // namespace hetnn::plan
