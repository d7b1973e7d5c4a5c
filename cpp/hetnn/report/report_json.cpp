// Reports as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "hetnn/report/report.h"

namespace hetnn::report {

using Json = nlohmann::ordered_json;

namespace {

// Of the keys of docs/report-schema.json; a key that is removed or changes its meaning counts it up.
constexpr int kReportVersion = 2;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Bytes and multiply-accumulates are counts, computed as doubles where they depend on symbols.
Json count(double value) { return static_cast<int64_t>(std::llround(value)); }

}  // namespace

static void to_json(Json& out, const RewriteRow& row) {
  out = {{"rule", row.rule},
         {"node", row.node},
         {"op", row.op},
         {"form", row.form},
         {"why", row.why},
         {"bytes_avoided", count(row.bytes_avoided)},
         {"launches_avoided", row.launches_avoided},
         {"predicted_us_before", row.predicted_us_before},
         {"predicted_us_after", row.predicted_us_after}};
}

static void to_json(Json& out, const RewritingTotals& totals) {
  out = {{"bytes_avoided", count(totals.bytes_avoided)},
         {"launches_avoided", totals.launches_avoided},
         {"predicted_us_before", totals.predicted_us_before},
         {"predicted_us_after", totals.predicted_us_after}};
}

static void to_json(Json& out, const FusionRow& row) {
  out = {{"into", row.into},
         {"nodes", row.nodes},
         {"bytes_before", count(row.bytes_before)},
         {"bytes_after", count(row.bytes_after)},
         {"predicted_us_before", or_null(row.predicted_us_before)},
         {"predicted_us_after", or_null(row.predicted_us_after)}};
}

static void to_json(Json& out, const ReasonRow& row) {
  out = {
      {"label", row.label}, {"found", row.found}, {"wanted", row.wanted}, {"text", row.text}, {"device", row.device}};
}

static void to_json(Json& out, const NodeRow& row) {
  out = {{"node", row.node},       {"op", row.op},   {"device", or_null(row.device)},
         {"reasons", row.reasons}, {"loc", row.loc}, {"module", row.module}};
}

static void to_json(Json& out, const SubgraphRow& row) {
  out = {{"device", row.device},     {"nodes", row.nodes},        {"macs", count(row.macs)},
         {"inputs", row.inputs},     {"outputs", row.outputs},    {"predicted_us", row.predicted_us},
         {"start_us", row.start_us}, {"finish_us", row.finish_us}};
}

static void to_json(Json& out, const CrossingRow& row) {
  out = {{"value", row.value},
         {"from", row.from},
         {"to", row.to},
         {"bytes", count(row.bytes)},
         {"dtype", row.dtype},
         {"layout", row.layout},
         {"predicted_us", row.predicted_us}};
}

static void to_json(Json& out, const CandidateRow& row) { out = {{"name", row.name}, {"cost_us", row.cost_us}}; }

static void to_json(Json& out, const NoteRow& row) { out = {{"node", row.node}, {"text", row.text}}; }

static void to_json(Json& out, const GraphRow& row) {
  out = {
      {"node", row.node}, {"op", row.op}, {"inputs", row.inputs}, {"device", row.device}, {"subgraph", row.subgraph}};
}

namespace {

Json json_of(const Report& report) {
  int64_t nodes = 0;
  Json nodes_on = Json::object(), macs_on = Json::object(), bounds = Json::object();
  for (const DeviceRow& device : report.devices) {
    nodes += device.nodes;
    nodes_on[device.name] = device.nodes;
    macs_on[device.name] = count(device.macs);
    bounds[device.name] = device.lower_bound_subgraphs;
  }
  double crossing_bytes = 0;
  for (const CrossingRow& crossing : report.crossings) crossing_bytes += crossing.bytes;
  Json bodies = Json::array();
  for (const BodyRow& body : report.bodies) bodies.push_back({{"node", body.node}, {"report", json_of(body.report)}});
  const Json parts = {
      {"node_us", report.node_us}, {"launch_us", report.launch_us}, {"transfer_us", report.transfer_us}};
  Json out = {{"version", kReportVersion},
              {"target", report.target},
              {"strategy", report.strategy},
              {"nodes", nodes},
              {"nodes_on", nodes_on},
              {"macs_on", macs_on},
              {"subgraphs", report.subgraphs},
              {"crossings", report.crossings},
              {"crossing_bytes", count(crossing_bytes)},
              {"predicted_us", report.predicted_us},
              {"measured_nodes", report.measured_nodes},
              {"parts", parts},
              {"makespan_us", report.makespan_us},
              {"cut_us", or_null(report.cut_us)},
              {"lower_bound_us", or_null(report.lower_bound_us)},
              {"gap", or_null(report.gap)},
              {"lower_bound_subgraphs", bounds},
              {"candidates", report.candidates},
              {"margin_us", or_null(report.margin_us)},
              {"rewriting", or_null(report.rewriting)},
              {"rewrites", report.rewrites},
              {"fusions", report.fusions},
              {"not_on_preferred", report.not_on_preferred},
              {"notes", report.notes},
              {"graph", report.graph},
              {"bodies", std::move(bodies)}};
  return out;
}

}  // namespace

std::string report_json(const Report& report) { return json_of(report).dump(); }

std::string nodes_json(const std::vector<NodeRow>& rows) { return Json(rows).dump(); }

std::string why_json(const WhyRow& row) {
  Json out = row.node;
  out["subgraph"] = row.subgraph;
  for (const WhyRow::Cost& cost : row.costs) {
    out["time_us"][cost.device] = or_null(cost.time_us);
    out["plan_cost_us"][cost.device] = or_null(cost.plan_cost_us);
  }
  out["change"] = row.change;
  out["would_move"] = row.would_move;
  return out.dump();
}

}  // namespace hetnn::report
