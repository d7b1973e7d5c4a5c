// The report of a plan, as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "hetnn/plan/network.h"
#include "hetnn/plan/partition/explain.h"

namespace hetnn::plan {
namespace {

using Json = nlohmann::ordered_json;

// Of the keys of docs/report-schema.json; a key that is removed or changes its meaning counts it up.
constexpr int kReportVersion = 2;

Json names(const NetworkPlan& plan, std::span<const int32_t> nodes) {
  Json out = Json::array();
  for (int32_t node : nodes) out.push_back(plan.nodes[static_cast<size_t>(node)]->name());
  return out;
}

Json reason_json(const ops::Reason& reason) {
  return {{"label", reason.label}, {"found", reason.found}, {"wanted", reason.wanted}, {"text", reason.text}};
}

const std::string& device_name(const NetworkPlan& plan, int32_t device) {
  return plan.target->devices[static_cast<size_t>(device)]->name();
}

// What a node is not on, and why: a device's own reasons where it does not take the node, else what the planner says.
Json reasons_json(const NetworkPlan& plan, const Why& why) {
  Json out = Json::array();
  const auto node = static_cast<size_t>(why.node);
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    if (d == why.device) continue;
    const target::Support& support = plan.support[node][static_cast<size_t>(d)];
    for (const ops::Reason& reason : support.reasons) {
      Json row = reason_json(reason);
      row["device"] = device_name(plan, d);
      out.push_back(std::move(row));
    }
    for (const WhyReason& reason : why.reasons) {
      if (reason.device != d || (!support.ok() && reason.label == "support")) continue;
      out.push_back({{"label", reason.label},
                     {"found", reason.found},
                     {"wanted", reason.wanted},
                     {"text", reason.text},
                     {"device", device_name(plan, d)}});
    }
  }
  return out;
}

// A node as rows of nodes name it, its place in the model's source included.
Json node_row(const NetworkPlan& plan, size_t node, int32_t device, Json reasons) {
  return {{"node", plan.nodes[node]->name()},
          {"op", plan.nodes[node]->op().name},
          {"device", device_name(plan, device)},
          {"reasons", std::move(reasons)},
          {"loc", ops::to_string(plan.nodes[node]->loc())},
          {"module", plan.nodes[node]->loc().scope}};
}

Json subgraph_json(const NetworkPlan& plan, size_t s, const Subgraph& values) {
  const PartitionSubgraph& subgraph = plan.result.subgraphs[s];
  const std::span<const int32_t> nodes = plan.result.nodes[s];
  double macs = 0;
  for (int32_t node : nodes) macs += plan.problem.macs[static_cast<size_t>(node)];
  auto value_names = [](const std::vector<ir::Value*>& list) {
    Json out = Json::array();
    for (const ir::Value* value : list) out.push_back(value->name());
    return out;
  };
  return {{"device", device_name(plan, subgraph.device)},
          {"nodes", names(plan, nodes)},
          {"macs", macs},
          {"inputs", value_names(values.inputs)},
          {"outputs", value_names(values.outputs)},
          {"predicted_us", subgraph.predicted_us},
          {"start_us", subgraph.start_us},
          {"finish_us", subgraph.finish_us}};
}

Json rewrite_json(const RewriteRow& row) {
  return {{"rule", row.rule},
          {"node", row.node},
          {"op", row.op},
          {"form", row.form},
          {"why", row.why},
          {"bytes_avoided", row.bytes_avoided},
          {"launches_avoided", row.launches_avoided},
          {"predicted_us_before", row.predicted_us_before},
          {"predicted_us_after", row.predicted_us_after}};
}

Json totals_json(const RewritingTotals& totals) {
  return {{"bytes_avoided", totals.bytes_avoided},
          {"launches_avoided", totals.launches_avoided},
          {"predicted_us_before", totals.predicted_us_before},
          {"predicted_us_after", totals.predicted_us_after}};
}

Json fusion_json(const FusionRow& row) {
  const auto or_null = [](std::optional<double> us) { return us ? Json(*us) : Json(nullptr); };
  return {{"into", row.into},
          {"nodes", row.nodes},
          {"bytes_before", row.bytes_before},
          {"bytes_after", row.bytes_after},
          {"predicted_us_before", or_null(row.predicted_us_before)},
          {"predicted_us_after", or_null(row.predicted_us_after)}};
}

// Pricing a move plans anew, so the report does it for a bounded number of nodes; `why` does it for any.
constexpr int kMostPricedMoves = 64;
constexpr int32_t kMostPricedNodes = 1000;

Json not_on_preferred(const NetworkPlan& plan) {
  Json out = Json::array();
  if (plan.problem.device_count() < 2) return out;
  const Explainer explainer(plan.problem, plan.result);
  int priced = plan.problem.size() <= kMostPricedNodes ? 0 : kMostPricedMoves;
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    if (plan.result.device_of[k] != 0) continue;
    const auto& support = plan.support[k];
    const bool movable =
        std::any_of(support.begin() + 1, support.end(), [](const target::Support& s) { return s.ok(); });
    const bool price = movable && priced < kMostPricedMoves;
    if (price) ++priced;
    out.push_back(node_row(plan, k, 0, reasons_json(plan, explainer.explain(static_cast<int32_t>(k), price))));
  }
  return out;
}

// What a picture of the plan needs: nodes in order, each with the nodes it reads.
Json graph_json(const NetworkPlan& plan) {
  Json out = Json::array();
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const ir::Node& node = *plan.nodes[k];
    Json inputs = Json::array();
    for (const ir::Value* input : node.inputs()) {
      if (input && input->producer() && !input->producer()->is_constant()) inputs.push_back(input->producer()->name());
    }
    out.push_back({{"node", node.name()},
                   {"op", node.op().name},
                   {"inputs", inputs},
                   {"device", device_name(plan, plan.result.device_of[k])},
                   {"subgraph", plan.result.subgraph_of[k]}});
  }
  return out;
}

}  // namespace

std::string report_json(const NetworkPlan& plan, const ir::Graph& graph, std::string_view strategy,
                        const Rewriting& rewriting, const std::vector<FusionRow>& fusions) {
  const PartitionResult& result = plan.result;
  Json nodes_on = Json::object(), macs_on = Json::object(), bounds = Json::object();
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    nodes_on[device_name(plan, d)] = 0;
    macs_on[device_name(plan, d)] = 0.0;
    bounds[device_name(plan, d)] = result.lower_bound_subgraphs[static_cast<size_t>(d)];
  }
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const std::string& device = device_name(plan, result.device_of[k]);
    nodes_on[device] = nodes_on[device].get<int64_t>() + 1;
    macs_on[device] = macs_on[device].get<double>() + plan.problem.macs[k];
  }
  const std::vector<Subgraph> cuts =
      graph.stage >= ir::Stage::cut ? subgraphs_of(graph) : std::vector<Subgraph>(result.subgraphs.size());
  Json subgraphs = Json::array(), crossings = Json::array(), notes = Json::array();
  for (size_t s = 0; s < result.subgraphs.size(); ++s) subgraphs.push_back(subgraph_json(plan, s, cuts[s]));
  double crossing_bytes = 0;
  for (const PartitionCrossing& crossing : result.crossings) {
    crossing_bytes += crossing.bytes;
    const ir::Value& value = *plan.nodes[static_cast<size_t>(crossing.node)]->output();
    crossings.push_back({{"value", value.name()},
                         {"from", device_name(plan, crossing.from_device)},
                         {"to", device_name(plan, crossing.to_device)},
                         {"bytes", crossing.bytes},
                         {"dtype", dtype_name(value.dtype())},
                         {"layout", ops::is_feature_map(value.type()) ? "nhwc" : "plain"},
                         {"predicted_us", crossing.transfer_us}});
  }
  for (const PartitionNote& note : result.notes) {
    notes.push_back(
        {{"node", note.node < 0 ? "" : plan.nodes[static_cast<size_t>(note.node)]->name()}, {"text", note.text}});
  }
  Json rewrite_rows = Json::array(), fusion_rows = Json::array();
  for (const RewriteRow& row : rewriting.rows) rewrite_rows.push_back(rewrite_json(row));
  for (const FusionRow& row : fusions) fusion_rows.push_back(fusion_json(row));
  // Cut, margin, gap and parts are the partitioner's own account of itself.
  const Json explained = Json::parse(explain_json(plan.problem, result));
  const Json out = {{"version", kReportVersion},
                    {"target", plan.target->name},
                    {"strategy", strategy},
                    {"nodes", plan.nodes.size()},
                    {"nodes_on", nodes_on},
                    {"macs_on", macs_on},
                    {"subgraphs", subgraphs},
                    {"crossings", crossings},
                    {"crossing_bytes", crossing_bytes},
                    {"predicted_us", result.cost_us},
                    {"measured_nodes", plan.measured_nodes},
                    {"parts", explained.at("parts")},
                    {"makespan_us", result.makespan_us},
                    {"cut_us", explained.at("cut_us")},
                    {"lower_bound_us", explained.at("lower_bound_us")},
                    {"gap", explained.at("gap")},
                    {"lower_bound_subgraphs", bounds},
                    {"candidates", explained.at("candidates")},
                    {"margin_us", explained.at("margin_us")},
                    {"rewriting", rewriting.rows.empty() ? Json(nullptr) : totals_json(rewriting.totals)},
                    {"rewrites", rewrite_rows},
                    {"fusions", fusion_rows},
                    {"not_on_preferred", not_on_preferred(plan)},
                    {"notes", notes},
                    {"graph", graph_json(plan)}};
  return out.dump();
}

std::string why_json(const NetworkPlan& plan, std::string_view name) {
  const size_t node = plan.index_of(name);
  const Why why = explain_node(plan.problem, plan.result, static_cast<int32_t>(node));
  Json changes = Json::array();
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    if (d == why.device) continue;
    const auto& reasons = plan.support[node][static_cast<size_t>(d)].reasons;
    if (reasons.empty()) changes.push_back("pin it to " + device_name(plan, d));
    for (const ops::Reason& reason : reasons)
      changes.push_back(device_name(plan, d) + ": " + reason.wanted + " instead of " + reason.found);
  }
  Json out = node_row(plan, node, why.device, reasons_json(plan, why));
  out["subgraph"] = why.subgraph;
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    const auto at = static_cast<size_t>(d);
    const auto figure = [](double us) { return us < kUnsupported ? Json(us) : Json(nullptr); };
    out["time_us"][device_name(plan, d)] = figure(why.time_us[at]);
    out["plan_cost_us"][device_name(plan, d)] = figure(why.plan_cost_us[at]);
  }
  out["change"] = why.change;
  out["would_move"] = changes;
  return out.dump();
}

std::string unsupported_json(const NetworkPlan& plan) {
  Json out = Json::array();
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const auto& support = plan.support[k];
    const bool homeless = !support[0].ok();
    if (std::any_of(support.begin() + 1, support.end(), [](const target::Support& s) { return s.ok(); })) continue;
    if (support.size() == 1 && !homeless) continue;
    Json reasons = Json::array();
    for (size_t d = 0; d < support.size(); ++d) {
      for (const ops::Reason& reason : support[d].reasons) {
        Json row = reason_json(reason);
        row["device"] = device_name(plan, static_cast<int32_t>(d));
        reasons.push_back(std::move(row));
      }
    }
    Json row = node_row(plan, k, 0, std::move(reasons));
    if (homeless) row["device"] = nullptr;
    out.push_back(std::move(row));
  }
  return out.dump();
}

}  // namespace hetnn::plan
