// The report of a plan.
#include <algorithm>
#include <span>

#include "hetnn/plan/network.h"
#include "hetnn/plan/partition/explain/explain.h"

namespace hetnn::plan {
namespace {

const std::string& device_name(const NetworkPlan& plan, int32_t device) {
  return plan.target->devices[static_cast<size_t>(device)]->name();
}

void add_support_reasons(const NetworkPlan& plan, size_t node, int32_t device, std::vector<report::ReasonRow>& rows) {
  for (const ops::Reason& reason : plan.support[node][static_cast<size_t>(device)].reasons)
    rows.push_back({reason.label, reason.found, reason.wanted, reason.text, device_name(plan, device)});
}

// What a node is not on, and why: a device's own reasons where it does not take the node, else what the planner says.
std::vector<report::ReasonRow> reasons_of(const NetworkPlan& plan, const Why& why) {
  std::vector<report::ReasonRow> rows;
  const auto node = static_cast<size_t>(why.node);
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    if (d == why.device) continue;
    add_support_reasons(plan, node, d, rows);
    const bool supported = plan.support[node][static_cast<size_t>(d)].ok();
    for (const WhyReason& reason : why.reasons) {
      if (reason.device != d || (!supported && reason.label == "support")) continue;
      rows.push_back({reason.label, reason.found, reason.wanted, reason.text, device_name(plan, d)});
    }
  }
  return rows;
}

report::NodeRow node_row(const NetworkPlan& plan, size_t node, int32_t device, std::vector<report::ReasonRow> reasons) {
  const ir::Node& at = *plan.nodes[node];
  return {at.name(),          std::string(at.op().name), device_name(plan, device),
          std::move(reasons), ops::to_string(at.loc()),  at.loc().scope};
}

report::SubgraphRow subgraph_row(const NetworkPlan& plan, size_t s, const Subgraph& values) {
  const PartitionSubgraph& subgraph = plan.result.subgraphs[s];
  report::SubgraphRow row;
  row.device = device_name(plan, subgraph.device);
  row.predicted_us = subgraph.predicted_us;
  row.start_us = subgraph.start_us;
  row.finish_us = subgraph.finish_us;
  for (const int32_t node : plan.result.nodes[s]) {
    row.nodes.push_back(plan.nodes[static_cast<size_t>(node)]->name());
    row.macs += plan.problem.macs[static_cast<size_t>(node)];
  }
  for (const ir::Value* value : values.inputs) row.inputs.push_back(value->name());
  for (const ir::Value* value : values.outputs) row.outputs.push_back(value->name());
  return row;
}

report::CrossingRow crossing_row(const NetworkPlan& plan, const PartitionCrossing& crossing) {
  const ir::Value& value = *plan.nodes[static_cast<size_t>(crossing.node)]->output();
  return {.value = value.name(),
          .from = device_name(plan, crossing.from_device),
          .to = device_name(plan, crossing.to_device),
          .bytes = crossing.bytes,
          .dtype = std::string(dtype_name(value.dtype())),
          .layout = ops::is_feature_map(value.type()) ? "nhwc" : "plain",
          .predicted_us = crossing.transfer_us};
}

// Pricing a move plans anew, so the report does it for a bounded number of nodes; `why` does it for any.
constexpr int kMostPricedMoves = 64;
constexpr int32_t kMostPricedNodes = 1000;

std::vector<report::NodeRow> not_on_preferred(const NetworkPlan& plan) {
  std::vector<report::NodeRow> rows;
  if (plan.problem.device_count() < 2) return rows;
  const Explainer explainer(plan.problem, plan.result);
  int priced = plan.problem.size() <= kMostPricedNodes ? 0 : kMostPricedMoves;
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    if (plan.result.device_of[k] != 0) continue;
    const auto& support = plan.support[k];
    const bool movable =
        std::any_of(support.begin() + 1, support.end(), [](const target::Support& s) { return s.ok(); });
    const bool price = movable && priced < kMostPricedMoves;
    if (price) ++priced;
    rows.push_back(node_row(plan, k, 0, reasons_of(plan, explainer.explain(static_cast<int32_t>(k), price))));
  }
  return rows;
}

report::GraphRow graph_row(const NetworkPlan& plan, const ir::Graph& graph, size_t k) {
  const ir::Node& node = *plan.nodes[k];
  std::vector<std::string> inputs;
  for (const ir::Value* input : node.inputs()) {
    if (input && input->producer() && !input->producer()->is_constant()) inputs.push_back(input->producer()->name());
  }
  std::vector<std::string> supported_by;
  for (size_t d = 0; d < plan.support[k].size(); ++d) {
    if (plan.support[k][d].ok()) supported_by.push_back(device_name(plan, static_cast<int32_t>(d)));
  }
  const int32_t device = plan.result.device_of[k];
  const Bindings hints = graph.hints();
  const std::string dtype(dtype_name(node.output()->dtype()));
  const double us = plan.problem.time_of(static_cast<int32_t>(k), device);
  return {.node = node.name(),
          .op = std::string(node.op().name),
          .inputs = std::move(inputs),
          .device = device_name(plan, device),
          .subgraph = plan.result.subgraph_of[k],
          .supported_by = std::move(supported_by),
          .dtype = dtype,
          .shape = node.output()->shape(),
          .computes_in = dtype,
          .module = node.loc().scope,
          .loc = ops::to_string(node.loc()),
          .macs = plan.problem.macs[k],
          .bytes = static_cast<double>(target::bytes_touched(node, hints)),
          .predicted_us = us < kUnsupported ? us : 0,
          .made_from = node.aliases};
}

std::optional<double> figure(double us) { return us < kUnsupported ? std::optional(us) : std::nullopt; }

}  // namespace

report::Report report_of(const NetworkPlan& plan, const ir::Graph& graph, std::string_view strategy) {
  const PartitionResult& result = plan.result;
  Account account = account_of(plan.problem, result);
  report::Report out;
  out.target = plan.target->name;
  out.strategy = strategy;
  out.predicted_us = result.cost_us;
  out.measured_nodes = plan.measured_nodes;
  out.node_us = account.node_us;
  out.launch_us = account.launch_us;
  out.transfer_us = account.transfer_us;
  out.makespan_us = result.makespan_us;
  out.cut_us = account.cut_us;
  out.lower_bound_us = account.lower_bound_us;
  out.gap = account.gap;
  out.margin_us = account.margin_us;
  out.not_on_preferred = not_on_preferred(plan);
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    out.devices.push_back(
        {.name = device_name(plan, d), .lower_bound_subgraphs = result.lower_bound_subgraphs[static_cast<size_t>(d)]});
  }
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    report::DeviceRow& device = out.devices[static_cast<size_t>(result.device_of[k])];
    ++device.nodes;
    device.macs += plan.problem.macs[k];
    out.graph.push_back(graph_row(plan, graph, k));
  }
  for (size_t s = 0; s < result.subgraphs.size(); ++s) {
    // It may have been cut further.
    std::vector<ir::Node*> nodes;
    for (const int32_t node : result.nodes[s]) nodes.push_back(plan.nodes[static_cast<size_t>(node)]);
    const bool is_cut = graph.stage >= ir::Stage::cut;
    out.subgraphs.push_back(
        subgraph_row(plan, s, is_cut ? subgraph_of_nodes(graph, {}, std::move(nodes)) : Subgraph()));
  }
  for (const PartitionCrossing& crossing : result.crossings) out.crossings.push_back(crossing_row(plan, crossing));
  for (PartitionCandidate& candidate : account.candidates)
    out.candidates.push_back({std::move(candidate.name), candidate.cost_us});
  for (const auto& device : plan.target->devices) {
    for (std::string& note : device->notes()) out.notes.push_back({"", std::move(note)});
  }
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const target::Device& device = *plan.target->devices[static_cast<size_t>(result.device_of[k])];
    if (std::string apart = device.deviation(*plan.nodes[k]); !apart.empty())
      out.notes.push_back({plan.nodes[k]->name(), text(device.name(), " ", apart)});
  }
  for (const PartitionNote& note : result.notes) {
    out.notes.push_back({note.node < 0 ? "" : plan.nodes[static_cast<size_t>(note.node)]->name(), note.text});
  }
  return out;
}

report::WhyRow why_row(const NetworkPlan& plan, std::string_view name) {
  const size_t node = plan.index_of(name);
  const Why why = explain_node(plan.problem, plan.result, static_cast<int32_t>(node));
  report::WhyRow row{node_row(plan, node, why.device, reasons_of(plan, why)), why.subgraph, {}, why.change, {}};
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    const auto at = static_cast<size_t>(d);
    row.costs.push_back({device_name(plan, d), figure(why.time_us[at]), figure(why.plan_cost_us[at])});
    if (d == why.device) continue;
    const auto& reasons = plan.support[node][at].reasons;
    if (reasons.empty()) row.would_move.push_back("pin it to " + device_name(plan, d));
    for (const ops::Reason& reason : reasons)
      row.would_move.push_back(device_name(plan, d) + ": " + reason.wanted + " instead of " + reason.found);
  }
  return row;
}

std::vector<report::NodeRow> unsupported_nodes(const NetworkPlan& plan) {
  std::vector<report::NodeRow> rows;
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const auto& support = plan.support[k];
    const bool homeless = !support[0].ok();
    if (std::any_of(support.begin() + 1, support.end(), [](const target::Support& s) { return s.ok(); })) continue;
    if (support.size() == 1 && !homeless) continue;
    std::vector<report::ReasonRow> reasons;
    for (int32_t d = 0; d < plan.problem.device_count(); ++d) add_support_reasons(plan, k, d, reasons);
    rows.push_back(node_row(plan, k, 0, std::move(reasons)));
    if (homeless) rows.back().device.reset();
  }
  return rows;
}

}  // namespace hetnn::plan
