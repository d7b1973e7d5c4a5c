// Reports as JSON: fixed keys in a fixed order, and null for what is not known.
#include "hetnn/report/report.h"

#include <gtest/gtest.h>

namespace hetnn::report {
namespace {

TEST(Report, OfNothingHasEveryKey) {
  EXPECT_EQ(
      report_json({}),
      R"({"version":2,"target":"","strategy":"","nodes":0,"nodes_on":{},"macs_on":{},"subgraphs":[],"crossings":[],)"
      R"("crossing_bytes":0,"predicted_us":0.0,"measured_nodes":0,)"
      R"("parts":{"node_us":0.0,"launch_us":0.0,"transfer_us":0.0},"makespan_us":0.0,"cut_us":null,)"
      R"("lower_bound_us":null,"gap":null,"lower_bound_subgraphs":{},"candidates":[],"margin_us":null,)"
      R"("rewriting":null,"rewrites":[],"fusions":[],"not_on_preferred":[],"notes":[],"graph":[],"bodies":[]})");
}

TEST(Report, AddsUpNodesAndBytes) {
  Report report;
  report.devices = {{"cpu", 2, 8.0, 1}, {"npu", 3, 16.5, 2}};
  report.crossings = {{"a", "cpu", "npu", 100, "f32", "nhwc", 1.5}, {"b", "npu", "cpu", 28, "i8", "plain", 0.5}};
  const std::string json = report_json(report);
  for (const char* part : {
           R"("nodes":5,"nodes_on":{"cpu":2,"npu":3},"macs_on":{"cpu":8,"npu":17},)",
           R"({"value":"b","from":"npu","to":"cpu","bytes":28,"dtype":"i8","layout":"plain","predicted_us":0.5}],)"
           R"("crossing_bytes":128,)",
           R"("lower_bound_subgraphs":{"cpu":1,"npu":2},)",
       }) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\nin " << json;
  }
}

TEST(Report, SaysWhatWasRewrittenAndFused) {
  Report report;
  report.rewrites = {{"two_sides", "act", "prelu", "two_sides + negate", "no prelu", 64, 1, 9, 2.5}};
  report.rewriting = RewritingTotals{64, 1, 20, 10};
  report.fusions = {{"conv", {"conv", "relu"}, 30, 20}, {"fc", {"fc", "add"}, 3, 2, 1.5, 1.0}};
  const std::string json = report_json(report);
  const char* part =
      R"("rewriting":{"bytes_avoided":64,"launches_avoided":1,"predicted_us_before":20.0,"predicted_us_after":10.0},)"
      R"("rewrites":[{"rule":"two_sides","node":"act","op":"prelu","form":"two_sides + negate","why":"no prelu",)"
      R"("bytes_avoided":64,"launches_avoided":1,"predicted_us_before":9.0,"predicted_us_after":2.5}],)"
      R"("fusions":[{"into":"conv","nodes":["conv","relu"],"bytes_before":30,"bytes_after":20,)"
      R"("predicted_us_before":null,"predicted_us_after":null},{"into":"fc","nodes":["fc","add"],"bytes_before":3,)"
      R"("bytes_after":2,"predicted_us_before":1.5,"predicted_us_after":1.0}],)";
  EXPECT_NE(json.find(part), std::string::npos) << json;
}

TEST(Report, ANodeThatNoDeviceTakesIsOnNone) {
  const NodeRow row{"s", "sort", std::nullopt, {{"sort_missing", "sort", "relu", "no \"sort\"", "npu"}}, "m.py:3", "m"};
  const std::string node = R"({"node":"s","op":"sort","device":null,"reasons":[{"label":"sort_missing","found":"sort",)"
                           R"("wanted":"relu","text":"no \"sort\"","device":"npu"}],"loc":"m.py:3","module":"m")";
  EXPECT_EQ(nodes_json({}), "[]");
  EXPECT_EQ(nodes_json({row}), "[" + node + "}]");
  const WhyRow why{row, 4, {{"cpu", 2.5, 10.0}, {"npu", std::nullopt, std::nullopt}}, "It could.", {"npu: more"}};
  EXPECT_EQ(why_json(why), node + R"(,"subgraph":4,"time_us":{"cpu":2.5,"npu":null},)"
                                  R"("plan_cost_us":{"cpu":10.0,"npu":null},"change":"It could.",)"
                                  R"("would_move":["npu: more"]})");
}

}  // namespace
}  // namespace hetnn::report
