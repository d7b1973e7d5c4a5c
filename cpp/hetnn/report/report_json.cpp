// Reports as JSON, by tables of their keys, from which docs/report-schema.json and the table of docs/report.md are
// made.
#include <cmath>

#include "hetnn/base/json_fields.h"
#include "hetnn/report/report.h"

namespace hetnn::report {
namespace {

using json::Convert;
using json::Fields;
using json::Json;
using json::list_of;
using json::object;
using json::Presence;

// A key that is removed or changes its meaning counts it up.
constexpr int kReportVersion = 2;

// Reports are written here and read as JSON: no row reads.
template <typename V>
Convert<V> written(std::function<Json(const V&)> write, Json schema) {
  return {{}, std::move(write), std::move(schema)};
}

Json of_type(std::string_view type) {
  Json schema;  // no braces beside a lambda: clang 14 leaks their parts
  schema["type"] = type;
  return schema;
}

Convert<std::string> text() {
  return written<std::string>([](const std::string& from) { return Json(from); }, of_type("string"));
}
Convert<double> number() {
  return written<double>([](double from) { return Json(from); }, of_type("number"));
}
template <typename V>
Convert<V> integer() {
  return written<V>([](V from) { return Json(from); }, of_type("integer"));
}
// Bytes and multiply-accumulates are counts, computed as doubles where they depend on symbols.
Json as_count(double value) { return static_cast<int64_t>(std::llround(value)); }
Convert<double> count() { return written<double>(as_count, of_type("integer")); }

template <typename V>
Convert<std::optional<V>> or_null(Convert<V> some) {
  Json schema = std::move(some.schema);
  schema["type"] = {schema.at("type"), "null"};
  return written<std::optional<V>>(
      [write = some.write](const std::optional<V>& from) { return from ? write(*from) : Json(); }, std::move(schema));
}

// A key whose value is worked out from the whole report.
Convert<Report> of_report(Json (*work_out)(const Report&), Json schema) {
  return written<Report>(work_out, std::move(schema));
}
Json by_device(const Report& report, Json (*figure)(const DeviceRow&)) {
  Json out = Json::object();
  for (const DeviceRow& device : report.devices) out[device.name] = figure(device);
  return out;
}
Convert<Report> integers_by_device(Json (*work_out)(const Report&)) {
  return of_report(work_out, {{"type", "object"}, {"additionalProperties", {{"type", "integer"}}}});
}

const Fields<Report>& part_fields() {
  static const Fields<Report> fields = {{"node_us", &Report::node_us, number(), "node times"},
                                        {"launch_us", &Report::launch_us, number(), "launches"},
                                        {"transfer_us", &Report::transfer_us, number(), "transfers"}};
  return fields;
}

const Fields<SubgraphRow>& subgraph_fields() {
  static const Fields<SubgraphRow> fields = {
      {"device", &SubgraphRow::device, text(), "its device"},
      {"nodes", &SubgraphRow::nodes, list_of(text()), "names in an order in which they can run"},
      {"macs", &SubgraphRow::macs, count(), "multiply-accumulates"},
      {"inputs", &SubgraphRow::inputs, list_of(text()), "values"},
      {"outputs", &SubgraphRow::outputs, list_of(text()), "values"},
      {"predicted_us", &SubgraphRow::predicted_us, number(), "launch and node times"},
      {"start_us", &SubgraphRow::start_us, number(), "in the schedule where devices overlap"},
      {"finish_us", &SubgraphRow::finish_us, number(), "in that schedule"}};
  return fields;
}

const Fields<CrossingRow>& crossing_fields() {
  static const Fields<CrossingRow> fields = {
      {"value", &CrossingRow::value, text(), "its name"},
      {"from", &CrossingRow::from, text(), "the device that makes it"},
      {"to", &CrossingRow::to, text(), "the device that reads it"},
      {"bytes", &CrossingRow::bytes, count(), "that move"},
      {"dtype", &CrossingRow::dtype, text(), "its element type"},
      {"layout", &CrossingRow::layout, text(), "nhwc or plain"},
      {"predicted_us", &CrossingRow::predicted_us, number(), "time of the transfer"}};
  return fields;
}

const Fields<CandidateRow>& candidate_fields() {
  static const Fields<CandidateRow> fields = {{"name", &CandidateRow::name, text(), "how it was made"},
                                              {"cost_us", &CandidateRow::cost_us, number(), "what it costs"}};
  return fields;
}

const Fields<RewritingTotals>& totals_fields() {
  static const Fields<RewritingTotals> fields = {
      {"bytes_avoided", &RewritingTotals::bytes_avoided, count(), "that would cross"},
      {"launches_avoided", &RewritingTotals::launches_avoided, integer<int32_t>(), "of accelerators"},
      {"predicted_us_before", &RewritingTotals::predicted_us_before, number(), "of the plan without"},
      {"predicted_us_after", &RewritingTotals::predicted_us_after, number(), "of the plan"}};
  return fields;
}

const Fields<RewriteRow>& rewrite_fields() {
  static const Fields<RewriteRow> fields = {
      {"rule", &RewriteRow::rule, text(), "the rule at the node itself"},
      {"node", &RewriteRow::node, text(), "its name"},
      {"op", &RewriteRow::op, text(), "the operator that was rewritten"},
      {"form", &RewriteRow::form, text(), "every rule of the expansion, outermost first"},
      {"why", &RewriteRow::why, text(), "the device's lack, the price, and that of the next best form"},
      {"bytes_avoided", &RewriteRow::bytes_avoided, count(),
       "of its inputs and outputs, that would cross if this node alone stayed as written on the general processor"},
      {"launches_avoided", &RewriteRow::launches_avoided, integer<int32_t>(),
       "of accelerators, in that case; below 0 where this node has a launch of its own"},
      {"predicted_us_before", &RewriteRow::predicted_us_before, number(),
       "its time on the general processor, those transfers and launches"},
      {"predicted_us_after", &RewriteRow::predicted_us_after, number(),
       "of what took its place, before neighbours are folded together"}};
  return fields;
}

const Fields<FusionRow>& fusion_fields() {
  static const Fields<FusionRow> fields = {
      {"into", &FusionRow::into, text(), "the node whose kernel computes them"},
      {"nodes", &FusionRow::nodes, list_of(text()), "their names"},
      {"bytes_before", &FusionRow::bytes_before, count(), "moved by the nodes one by one"},
      {"bytes_after", &FusionRow::bytes_after, count(), "moved together"},
      {"predicted_us_before", &FusionRow::predicted_us_before, or_null(number()),
       "on an NPU: of the nodes one by one; elsewhere null", Presence::or_null},
      {"predicted_us_after", &FusionRow::predicted_us_after, or_null(number()), "on an NPU: together",
       Presence::or_null}};
  return fields;
}

const Fields<ReasonRow>& reason_fields() {
  static const Fields<ReasonRow> fields = {{"label", &ReasonRow::label, text(), "the constraint's name"},
                                           {"found", &ReasonRow::found, text(), "what the node has"},
                                           {"wanted", &ReasonRow::wanted, text(), "what would do"},
                                           {"text", &ReasonRow::text, text(), "one sentence"},
                                           {"device", &ReasonRow::device, text(), "the device it speaks against"}};
  return fields;
}

const Fields<NodeRow>& node_fields() {
  static const Fields<NodeRow> fields = {
      {"node", &NodeRow::node, text(), "its name"},
      {"op", &NodeRow::op, text(), "its operator"},
      {"device", &NodeRow::device, or_null(text()), "where it runs; null: no device takes it", Presence::or_null},
      {"reasons", &NodeRow::reasons, list_of(object(reason_fields)), "all of them, not the first"},
      {"loc", &NodeRow::loc, text(), "the model's own line"},
      {"module", &NodeRow::module, text(), "the module's path"}};
  return fields;
}

const Fields<NoteRow>& note_fields() {
  static const Fields<NoteRow> fields = {
      {"node", &NoteRow::node, text(), "empty where a note speaks of the whole plan"},
      {"text", &NoteRow::text, text(), "a sentence"}};
  return fields;
}

// A size, as programs and ports have it.
Convert<Dim> size() {
  return written<Dim>([](const Dim& from) { return from.is_static() ? Json(from.value()) : Json(from.to_string()); },
                      {{"type", {"integer", "string"}}});
}
// What whoever has the executable adds to a node: it stands in the program and in the times of a run.
Convert<GraphRow> of_row(std::string_view type) {
  return written<GraphRow>([](const GraphRow&) { return Json(); }, of_type(type));
}

Json rival_schema() {
  const auto of = [](std::string_view type, std::string_view meaning) {
    return Json{{"type", type}, {"description", meaning}};
  };
  return {{"type", "object"},
          {"properties",
           {{"kernel", of("string", "its name")},
            {"predicted_us", of("number", "the time that its work is predicted to take")},
            {"refusal", of("string", "in place of a time: why it does not serve the node")}}},
          {"required", {"kernel"}},
          {"additionalProperties", false}};
}

const Fields<GraphRow>& graph_fields() {
  static const Convert<GraphRow> rivals =
      written<GraphRow>([](const GraphRow&) { return Json(); }, {{"type", "array"}, {"items", rival_schema()}});
  static const Fields<GraphRow> fields = {
      {"node", &GraphRow::node, text(), "its name"},
      {"op", &GraphRow::op, text(), "its operator"},
      {"inputs", &GraphRow::inputs, list_of(text()), "nodes"},
      {"device", &GraphRow::device, text(), "where it runs"},
      {"subgraph", &GraphRow::subgraph, integer<int32_t>(), "the number of its subgraph"},
      {"supported_by", &GraphRow::supported_by, list_of(text()), "devices that could run it", Presence::optional},
      {"dtype", &GraphRow::dtype, text(), "the element type of its first result", Presence::optional},
      {"shape", &GraphRow::shape, list_of(size()), "of that result; texts are expressions of the model's symbols",
       Presence::optional},
      {"computes_in", &GraphRow::computes_in, text(), "the element type that its device computes it in",
       Presence::optional},
      {"module", &GraphRow::module, text(), "the module's path", Presence::optional},
      {"loc", &GraphRow::loc, text(), "the model's own line", Presence::optional},
      {"macs", &GraphRow::macs, count(), "multiply-accumulates", Presence::optional},
      {"bytes", &GraphRow::bytes, count(), "that it reads and writes, by itself", Presence::optional},
      {"predicted_us", &GraphRow::predicted_us, number(), "its time on its device, by itself", Presence::optional},
      {"made_from", &GraphRow::made_from, list_of(text()), "names of nodes and modules that were folded into it",
       Presence::optional},
      {"into", of_row("string"), "of a compiled model: the node whose kernel or layer computes it, where not its own",
       Presence::optional},
      {"kernel", of_row("string"), "of an executable, on the CPU: the kernel, or `meaning of` its operator",
       Presence::optional},
      {"kernel_us", of_row("number"), "of an executable, on the CPU: the time by which the kernel was chosen",
       Presence::optional},
      {"rivals", rivals, "of an executable, on the CPU: the operator's other kernels, the best first",
       Presence::optional},
      {"tile", of_row("string"), "of an executable, on an NPU: how the layer is cut", Presence::optional},
      {"cycles", of_row("integer"), "of an executable, on an NPU: by which the layer puts off the end",
       Presence::optional},
      {"stall_cycles", of_row("integer"), "of those, in which nothing is computed", Presence::optional},
      {"measured_us", of_row("number"),
       "of a profile: on the CPU wall time of the kernel, on an NPU the cycles over its clock", Presence::optional}};
  return fields;
}

Json json_of(const Report& report);

Convert<BodyRow> body() {
  const Json text_schema = {{"type", "string"}, {"description", "the loop"}};
  return written<BodyRow>(
      [](const BodyRow& row) {
        return Json{{"node", row.node}, {"report", json_of(row.report)}};
      },
      {{"type", "object"},
       {"properties", {{"node", text_schema}, {"report", {{"$ref", "#"}}}}},
       {"additionalProperties", false},
       {"required", {"node", "report"}}});
}

// What whoever compiled adds: the passes that ran.
Json pass_schema() {
  const Json properties = {
      {"name", {{"type", "string"}, {"description", "of the pass"}}},
      {"stage", {{"type", "string"}, {"description", "what the model then is, or is on its way to"}}},
      {"ms", {{"type", "number"}, {"description", "wall time"}}}};
  return {{"type", "array"},
          {"items",
           {{"type", "object"},
            {"properties", properties},
            {"additionalProperties", false},
            {"required", {"name", "stage", "ms"}}}}};
}

Fields<Report> make_report_fields() {
  return {
      {"version",
       of_report([](const Report&) { return Json(kReportVersion); }, {{"type", "integer"}, {"enum", {kReportVersion}}}),
       "of these keys"},
      {"target", &Report::target, text(), "what was asked for"},
      {"strategy", &Report::strategy, text(), "how nodes were placed"},
      {"nodes",
       of_report(
           [](const Report& report) {
             int64_t sum = 0;
             for (const DeviceRow& device : report.devices) sum += device.nodes;
             return Json(sum);
           },
           {{"type", "integer"}}),
       "how many in all; constants are no nodes"},
      {"nodes_on", integers_by_device([](const Report& report) {
         return by_device(report, [](const DeviceRow& device) { return Json(device.nodes); });
       }),
       "how many by device, the general processor first"},
      {"macs_on", integers_by_device([](const Report& report) {
         return by_device(report, [](const DeviceRow& device) { return as_count(device.macs); });
       }),
       "multiply-accumulates by device"},
      {"subgraphs", &Report::subgraphs, list_of(object(subgraph_fields)), "in an order in which they can run"},
      {"crossings", &Report::crossings, list_of(object(crossing_fields)),
       "once per value and other device that reads it"},
      {"crossing_bytes",
       of_report(
           [](const Report& report) {
             double sum = 0;
             for (const CrossingRow& crossing : report.crossings) sum += crossing.bytes;
             return as_count(sum);
           },
           {{"type", "integer"}}),
       "their sum"},
      {"predicted_us", &Report::predicted_us, number(), "node times, launches and transfers, one after the other"},
      {"measured_nodes", &Report::measured_nodes, integer<int64_t>(),
       "nodes whose time was measured (`calibrate`) and not predicted"},
      {"parts", of_report([](const Report& report) { return part_fields().write(report); }, part_fields().schema()),
       "they add up to `predicted_us`"},
      {"makespan_us", &Report::makespan_us, number(), "the end of the schedule in which devices work at the same time"},
      {"cut_us", &Report::cut_us, or_null(number()), "strategy `cost`: the minimum cut, without launches",
       Presence::or_null},
      {"lower_bound_us", &Report::lower_bound_us, or_null(number()), "strategy `cost`: what no plan can cost less than",
       Presence::or_null},
      {"gap", &Report::gap, or_null(number()), "predicted_us / lower_bound_us - 1", Presence::or_null},
      {"lower_bound_subgraphs", integers_by_device([](const Report& report) {
         return by_device(report, [](const DeviceRow& device) { return Json(device.lower_bound_subgraphs); });
       }),
       "by device: the fewest subgraphs that this placement allows"},
      {"candidates", &Report::candidates, list_of(object(candidate_fields)),
       "strategy `cost`: every whole plan it weighed, the cheapest first"},
      {"margin_us", &Report::margin_us, or_null(number()), "how far the next dearer candidate is behind",
       Presence::or_null},
      {"rewriting", &Report::rewriting, or_null(object(totals_fields)),
       "all rewrites together, against the best plan without any; null where nothing was rewritten", Presence::or_null},
      {"rewrites", &Report::rewrites, list_of(object(rewrite_fields)),
       "what each is worth by itself, against the same plan with this node alone left as written on the general "
       "processor. "
       "These do not add up to `rewriting`: two layers left as written may share a crossing"},
      {"fusions", &Report::fusions, list_of(object(fusion_fields)), "of a compiled model: what runs in one launch"},
      {"not_on_preferred", &Report::not_on_preferred, list_of(object(node_fields)),
       "nodes on the general processor though there is an accelerator"},
      {"notes", &Report::notes, list_of(object(note_fields)),
       "soft pins not kept, nodes moved for a budget, what a repair moved or cut, claims of a data sheet that nothing "
       "makes true, how far a device's integers may be from what a node means, and those of layers between conversions "
       "from the model's f32"},
      {"graph", &Report::graph, list_of(object(graph_fields)), "every node in order; what the pictures are drawn from"},
      {"bodies", &Report::bodies, list_of(body()),
       "what loops repeat, each planned as a model of its own; that of a body inside another stands before that one's",
       Presence::optional},
      {"passes", of_report([](const Report&) { return Json(); }, pass_schema()),
       "where the model was compiled or planned in this process: each pass of the compiler in order",
       Presence::optional}};
}
const Fields<Report>& report_fields() {
  static const Fields<Report> fields = make_report_fields();
  return fields;
}

Json json_of(const Report& report) { return report_fields().write(report); }

}  // namespace

std::string report_json(const Report& report) { return json_of(report).dump(); }

std::string report_schema() { return json::schema_text("A report of a network", report_fields().schema()); }

std::string nodes_json(const std::vector<NodeRow>& rows) { return list_of(object(node_fields)).write(rows).dump(); }

std::string why_json(const WhyRow& row) {
  Json out = node_fields().write(row.node);
  const auto figure = [](const std::optional<double>& us) { return us ? Json(*us) : Json(); };
  out["subgraph"] = row.subgraph;
  for (const WhyRow::Cost& cost : row.costs) {
    out["time_us"][cost.device] = figure(cost.time_us);
    out["plan_cost_us"][cost.device] = figure(cost.plan_cost_us);
  }
  out["change"] = row.change;
  out["would_move"] = row.would_move;
  return out.dump();
}

}  // namespace hetnn::report
