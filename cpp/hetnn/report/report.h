// What was rewritten, fused and placed, and why, as data: passes and plans fill it in, JSON is one way to write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetnn/base/dim.h"

namespace hetnn::report {

/// One rewriting, and what it is worth by itself: against the same plan in which this node alone stays as it was
/// written, on the general processor.
struct RewriteRow {
  std::string rule;  // the rule at the node itself
  std::string node, op;
  std::string form;                // every rule of the expansion, outermost first
  std::string why;                 // the device's lack, the price, and the price of the next best form
  double bytes_avoided = 0;        // of its inputs and outputs, that would cross
  int32_t launches_avoided = 0;    // of accelerators
  double predicted_us_before = 0;  // its time on the general processor, those transfers and launches
  double predicted_us_after = 0;   // of what took its place, before neighbours are folded together
};

/// All rewritings together: the best plan without any against the plan.
struct RewritingTotals {
  double bytes_avoided = 0;
  int32_t launches_avoided = 0;
  double predicted_us_before = 0;
  double predicted_us_after = 0;
};

/// Nodes that are computed in one launch.
struct FusionRow {
  std::string into;
  std::vector<std::string> nodes;
  double bytes_before = 0;
  double bytes_after = 0;
  std::optional<double> predicted_us_before = {};  // of the nodes one by one; where the device predicts both
  std::optional<double> predicted_us_after = {};
};

/// One reason against a node on a device.
struct ReasonRow {
  std::string label, found, wanted, text, device;
};

/// A node that is not where it could be fastest, its place in the model's source included.
struct NodeRow {
  std::string node, op;
  std::optional<std::string> device;  // none: no device takes it
  std::vector<ReasonRow> reasons;
  std::string loc, module;
};

/// Why a node is where it is, and what the others would cost.
struct WhyRow {
  struct Cost {
    std::string device;
    std::optional<double> time_us, plan_cost_us;  // of the node, and of the plan with it moved there; none: impossible
  };
  NodeRow node;
  int32_t subgraph = 0;
  std::vector<Cost> costs;
  std::string change;                   // what would move it to its fastest device, in one sentence
  std::vector<std::string> would_move;  // for each other device, what would have to be different
};

struct DeviceRow {
  std::string name;
  int64_t nodes = 0;
  double macs = 0;
  int32_t lower_bound_subgraphs = 0;
};

struct SubgraphRow {
  std::string device;
  std::vector<std::string> nodes;  // in an order in which they can run
  double macs = 0;
  std::vector<std::string> inputs, outputs;  // values
  double predicted_us = 0;
  double start_us = 0, finish_us = 0;  // where devices work at the same time
};

/// A value that moves, once per other device that reads it.
struct CrossingRow {
  std::string value, from, to;
  double bytes = 0;
  std::string dtype, layout;
  double predicted_us = 0;
};

/// A whole plan that was weighed.
struct CandidateRow {
  std::string name;
  double cost_us = 0;
};

struct NoteRow {
  std::string node, text;
};

/// A node of the plan: what it is, where it runs, and what that costs. Pictures, tables and time lines are views of it.
struct GraphRow {
  std::string node, op;
  std::vector<std::string> inputs;
  std::string device;
  int32_t subgraph = 0;
  std::vector<std::string> supported_by;  // devices
  std::string dtype = {};                 // of its first result
  std::vector<Dim> shape = {};
  std::string computes_in = {};  // the element type that its device computes in
  std::string module = {}, loc = {};
  double macs = 0, bytes = 0;               // at the example's sizes
  double predicted_us = 0;                  // on its device
  std::vector<std::string> made_from = {};  // nodes and modules that were folded into it
};

struct BodyRow;

/// docs/report.md says what each key means.
struct Report {
  std::string target, strategy;
  std::vector<DeviceRow> devices;  // the general processor first
  std::vector<SubgraphRow> subgraphs;
  std::vector<CrossingRow> crossings;
  double predicted_us = 0;
  int64_t measured_nodes = 0;
  double node_us = 0, launch_us = 0, transfer_us = 0;  // the parts of predicted_us
  double makespan_us = 0;
  std::optional<double> cut_us, lower_bound_us, gap, margin_us;
  std::vector<CandidateRow> candidates;
  std::optional<RewritingTotals> rewriting;
  std::vector<RewriteRow> rewrites;
  std::vector<FusionRow> fusions;
  std::vector<NodeRow> not_on_preferred;
  std::vector<NoteRow> notes;
  std::vector<GraphRow> graph;
  std::vector<BodyRow> bodies;
};

/// What a loop repeats, planned for itself.
struct BodyRow {
  std::string node;
  Report report;
};

/// The report in the keys of its schema.
std::string report_json(const Report& report);
/// The JSON schema of reports, docs/report-schema.json, by which reports of executables are checked when read.
std::string report_schema();
/// Rows as those of `not_on_preferred`.
std::string nodes_json(const std::vector<NodeRow>& rows);
std::string why_json(const WhyRow& row);

}  // namespace hetnn::report
