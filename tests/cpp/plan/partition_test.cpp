// Plans of small problems worked by hand, problems that break partitioners, bad input, pins, budgets, schedule, repair.
#include "hetnn/plan/partition/strategies/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/explain/explain.h"
#include "hetnn/plan/partition/strategies/plan_json.h"

namespace hetnn::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Sets = std::vector<std::vector<std::string>>;

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// "a: b!:a c~:a,b": id, `!` for not supported by the accelerator, `~` for not exportable from it, inputs.
Problem graph(const std::string& words) {
  Problem p;
  p.devices = {{"cpu", 0, false, -1}, {"npu", 1, false, -1}};
  p.set_links({1000, 1});
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const size_t colon = word.find(':');
    std::string name = word.substr(0, colon);
    const bool supported = name.find('!') == std::string::npos;
    const bool exportable = name.find('~') == std::string::npos;
    name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return c == '!' || c == '~'; }), name.end());
    std::vector<int32_t> inputs;
    std::istringstream ids(word.substr(colon + 1));
    for (std::string id; std::getline(ids, id, ',');)
      inputs.push_back(static_cast<int32_t>(std::find(p.ids.begin(), p.ids.end(), id) - p.ids.begin()));
    const int32_t v = p.add_node(name, inputs);
    p.time_of(v, 0) = 10;
    if (supported) p.time_of(v, 1) = 1;
    p.exportable[index(v) * 2 + 1] = exportable ? 1 : 0;
    p.output_bytes.back() = 1000;
  }
  return p;
}

Sets sets(const Problem& p, const PartitionResult& result) {
  Sets all;
  for (size_t s = 0; s < result.subgraphs.size(); ++s) {
    std::vector<std::string> ids;
    for (const int32_t v : result.nodes[s]) ids.push_back(p.ids[index(v)]);
    std::sort(ids.begin(), ids.end());
    all.push_back(ids);
  }
  std::sort(all.begin(), all.end());
  return all;
}

Sets plan_sets(const std::string& words, const std::string& strategy, const std::string& options = "{}") {
  const Problem p = graph(words);
  return sets(p, partition(p, parse_plan_options(strategy, options)));
}

TEST(WorkedExamples, Depth) {
  EXPECT_EQ(plan_sets("a: b!:a c:b e: d:c,e", "depth"), (Sets{{"a"}, {"b"}, {"c", "d", "e"}}));
  // The order in which nodes are listed does not matter.
  EXPECT_EQ(plan_sets("e: a: b!:a c:b d:c,e", "depth"), (Sets{{"a"}, {"b"}, {"c", "d", "e"}}));
  EXPECT_EQ(plan_sets("m: q!: n:m,q", "depth"), (Sets{{"m", "n"}, {"q"}}));
  // Taken literally the rule would close a ring through c.
  const Sets ring = plan_sets("a: b:a c!:a d:c,b", "depth");
  EXPECT_EQ(ring.size(), 3U);
  EXPECT_THAT(ring, testing::Not(testing::Contains(ElementsAre("a", "b", "d"))));
}

TEST(WorkedExamples, DepthsAreThoseOfTheGraphThatIsLeft) {
  // Once r1, r2 and r3 are one node, p is as deep as they are, and q reads two nodes of one depth.
  const std::string words = "r1!: r2!:r1 r3!:r2 p: t:p q:r3,p";
  EXPECT_EQ(plan_sets(words, "depth"), (Sets{{"p", "q", "t"}, {"r1", "r2", "r3"}}));
  // Given depths stay: p and q are three apart, and q has another producer.
  Problem p = graph(words);
  p.depths = {0, 1, 2, 0, 1, 3};
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("depth", "{}"))), (Sets{{"p", "t"}, {"q"}, {"r1", "r2", "r3"}}));
  p.depths = {0, 0, 0, 0, 1, 1};
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("depth", "{}"))), (Sets{{"p", "q", "t"}, {"r1", "r2", "r3"}}));
}

TEST(WorkedExamples, MergeOfADirectRing) {
  // {a} and {c} are an edge apart, and b reads one and is read by the other.
  const std::string words = "a: b!:a c:a,b d:c";
  EXPECT_EQ(plan_sets(words, "merge"), (Sets{{"a"}, {"b"}, {"c", "d"}}));
  EXPECT_EQ(plan_sets(words, "merge", R"({"rings": "merge"})"), (Sets{{"a", "b", "c", "d"}}));
  // No ring without the edge from a to c, nor where two subgraphs lie between.
  EXPECT_EQ(plan_sets("a: b!:a c:b", "merge", R"({"rings": "merge"})"), (Sets{{"a"}, {"b"}, {"c"}}));
  EXPECT_EQ(plan_sets("a: b!:a x:b y!:x c:a,y", "merge", R"({"rings": "merge"})"),
            (Sets{{"a"}, {"b"}, {"c"}, {"x"}, {"y"}}));
  // What the general processor cannot run stays.
  Problem p = graph(words);
  p.time_of(0, 0) = kUnsupported;
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("merge", R"({"rings": "merge"})"))),
            (Sets{{"a"}, {"b"}, {"c", "d"}}));
}

TEST(WorkedExamples, MergeByWhatSuitsSimd) {
  Problem p = graph("a: b:a c:b");
  const Options simd = parse_plan_options("merge", R"({"criterion": "simd"})");
  EXPECT_EQ(sets(p, partition(p, simd)), (Sets{{"a", "b", "c"}}));
  p.compute[1] = 0;
  EXPECT_EQ(sets(p, partition(p, simd)), (Sets{{"a"}, {"b"}, {"c"}}));
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("merge", "{}"))), (Sets{{"a", "b", "c"}}));
  p.simd = {1, 1, 0};
  EXPECT_EQ(sets(p, partition(p, simd)), (Sets{{"a", "b"}, {"c"}}));
  // Only where the general processor can run them.
  p.time_of(2, 0) = kUnsupported;
  EXPECT_EQ(sets(p, partition(p, simd)), (Sets{{"a", "b", "c"}}));
}

TEST(WorkedExamples, Merge) {
  EXPECT_EQ(plan_sets("A: B:A C:A D!:B,C E:D F:D G:E,F", "merge"), (Sets{{"A", "B", "C"}, {"D"}, {"E", "F", "G"}}));
  EXPECT_EQ(plan_sets("A: B~:A C!:B", "merge", R"({"settle": "merge"})"), (Sets{{"A", "B", "C"}}));
  EXPECT_EQ(plan_sets("A: B~:A C!:B", "merge", R"({"settle": "trim"})"), (Sets{{"A"}, {"B", "C"}}));
  EXPECT_EQ(plan_sets("A!: B!~:A C:B", "merge"), (Sets{{"A", "B", "C"}}));
}

TEST(WorkedExamples, MergePolicies) {
  // Two accelerator subgraphs: {a,b,c} with three compute nodes and {e} with one.
  const std::string words = "a: b:a c:b d!:c e:d";
  EXPECT_EQ(plan_sets(words, "merge", R"({"policy": "largest"})"), (Sets{{"a", "b", "c"}, {"d", "e"}}));
  EXPECT_EQ(plan_sets(words, "merge", R"({"policy": "threshold", "threshold": 1})"),
            (Sets{{"a", "b", "c"}, {"d", "e"}}));
  EXPECT_EQ(plan_sets(words, "merge", R"({"policy": "threshold", "threshold": 3})"), (Sets{{"a", "b", "c", "d", "e"}}));
  EXPECT_EQ(plan_sets(words, "merge", R"({"policy": "largest+threshold", "threshold": 3})"),
            (Sets{{"a", "b", "c"}, {"d", "e"}}));
  // Each saves 9 us a node; a launch and two transfers cost 5 us, one transfer 3 us, so both pay.
  EXPECT_EQ(plan_sets(words, "merge", R"({"policy": "balance"})"), (Sets{{"a", "b", "c"}, {"d"}, {"e"}}));
  Problem p = graph(words);
  p.devices[1].launch_us = 20;
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("merge", R"({"policy": "balance"})"))),
            (Sets{{"a", "b", "c"}, {"d", "e"}}));
}

TEST(WorkedExamples, TopologicalTriesEachStartingColour) {
  // Starting with the accelerator takes 4 runs, starting with the general processor 3.
  const std::string words = "x!: a:x y!:a b: z!:b,y";
  EXPECT_EQ(plan_sets(words, "topological").size(), 3U);
  EXPECT_EQ(plan_sets("p: q!: r: s!:", "topological").size(), 2U);
  EXPECT_EQ(plan_sets("p: q!: r: s!:", "topological", R"({"order": "index"})").size(), 4U);
}

TEST(WorkedExamples, CostByTheFormula) {
  // On the accelerator: 3 * 1 us + launch 1 us; the value of b moves once although two nodes read it: 1 + 1000/1000.
  const Problem p = graph("a: b:a c:b d!:b e!:b");
  const PartitionResult result = partition(p, parse_plan_options("take-all", "{}"));
  EXPECT_DOUBLE_EQ(result.cost_us, 3 + 1 + 20 + 2);
  ASSERT_EQ(result.crossings.size(), 1U);
  EXPECT_EQ(p.ids[index(result.crossings[0].node)], "b");
  EXPECT_DOUBLE_EQ(result.crossings[0].transfer_us, 2);
}

TEST(HardGraphs, EveryStrategySurvives) {
  for (const char* words : {"0: 1!:0 2!:0 3:1 4!:2,3 5:2,3", "0!: 1:0 2!:1 3:0 4!:3 5!:3,4 6:1,4 7:2,3",
                            "0: 1!:0 2:0,1", "0~: 1!:0 2:0,1", "0: 1~:0 2:0 3!:2 4:1,3", "0~: 1~:0 2~:1 3:2,0 4!:0"}) {
    for (const char* strategy : {"topological", "depth", "merge", "cost", "take-all", "cpu-only"}) {
      EXPECT_NO_THROW(plan_sets(words, strategy)) << words << " " << strategy;
    }
  }
}

TEST(HardGraphs, ATrappedNodeDrawsItsConsumersIntoOneSubgraph) {
  // t may not leave the accelerator; its consumers c and e are both there, but e also waits for the general processor.
  const Problem p = graph("t~: c:t d!:c e:t,d");
  const PartitionResult result = partition(p, parse_plan_options("take-all", "{}"));
  // One subgraph {t,c,e} would depend on d, which depends on it: t must move.
  EXPECT_EQ(result.device_of[0], 0);
}

TEST(Devices, IslandsAreSplitOnlyWhereADeviceAsksForIt) {
  Problem p = graph("a: b: c!:a,b");
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("take-all", "{}"))), (Sets{{"a", "b"}, {"c"}}));
  p.devices[1].connected = true;
  EXPECT_EQ(sets(p, partition(p, parse_plan_options("take-all", "{}"))), (Sets{{"a"}, {"b"}, {"c"}}));
}

TEST(Devices, ThreeDevicesByCost) {
  Problem p;
  p.devices = {{"cpu", 0, false, -1}, {"npu", 0, false, -1}, {"dsp", 0, false, -1}};
  p.set_links({1000, 1});
  int32_t before = -1;
  for (int32_t v = 0; v < 6; ++v) {
    before = p.add_node("n" + std::to_string(v), before < 0 ? std::vector<int32_t>{} : std::vector<int32_t>{before});
    p.time_of(v, 0) = 50;
    p.time_of(v, 1) = v < 3 ? 2 : 40;
    p.time_of(v, 2) = v < 3 ? 40 : 3;
  }
  const PartitionResult result = partition(p);
  EXPECT_THAT(result.device_of, ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_DOUBLE_EQ(result.cost_us, 3 * 2 + 3 * 3 + 1);
}

TEST(Schedule, IndependentSubgraphsOverlap) {
  // Two branches of 10 us each, one on either device; they meet on the general processor.
  Problem p = graph("a: b!: c!:a,b");
  p.time_of(0, 1) = 10;
  p.time_of(0, 0) = kUnsupported;
  const PartitionResult result = partition(p, parse_plan_options("take-all", "{}"));
  // One after the other: 11 + 10 + 10 + transfer 2 = 33; at the same time a arrives at 13 while b ends at 10.
  EXPECT_DOUBLE_EQ(result.cost_us, 33);
  EXPECT_LE(result.makespan_us, 33);
  double start_of_a = -1;
  double start_of_b = -1;
  for (const PartitionSubgraph& s : result.subgraphs) {
    if (s.device == 1) start_of_a = s.start_us;
    if (s.device == 0 && start_of_b < 0) start_of_b = s.start_us;
  }
  EXPECT_DOUBLE_EQ(start_of_a, 0);
}

TEST(Pins, HardSoftAndImpossible) {
  Problem p = graph("a: b:a c!:b");
  p.pins.resize(3);
  p.pins[1] = {0, true};
  EXPECT_EQ(partition(p).device_of[1], 0);
  p.pins[1] = {0, false};
  EXPECT_EQ(partition(p).device_of[1], 0);
  p.pins[1] = {};
  p.pins[2] = {1, false};
  const PartitionResult result = partition(p);
  EXPECT_EQ(result.device_of[2], 0);
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_THAT(result.notes[0].text, HasSubstr("'npu' does not support it"));
  p.pins[2] = {1, true};
  EXPECT_THAT([&] { partition(p); },
              testing::ThrowsMessage<Unsupported>(HasSubstr("node 'c': pinned to 'npu', which does not support it")));
}

TEST(Pins, StrictListsAllOffenders) {
  const Problem p = graph("a: b!:a c~:b d!:");
  Options options;
  options.strict = "npu";
  EXPECT_THAT([&] { partition(p, options); },
              testing::ThrowsMessage<Unsupported>(testing::AllOf(
                  HasSubstr("3 of 4 nodes cannot run on 'npu'"), HasSubstr("'b': 'npu' does not support it"),
                  HasSubstr("'c': its result may not leave 'npu'"), HasSubstr("'d': 'npu' does not support it"))));
  options.strict = "tpu";
  EXPECT_THAT([&] { partition(p, options); }, testing::ThrowsMessage<InvalidModel>(HasSubstr("no device 'tpu'")));
}

TEST(Budgets, AreKeptAtTheLeastCost) {
  Problem p = graph("a: b:a c:b d:c");
  p.weight_bytes = {100, 100, 100, 100};
  p.time_of(1, 1) = 9;  // b gains least from the accelerator
  p.devices[1].budget_bytes = 300;
  const PartitionResult result = partition(p);
  double bytes = 0;
  for (int32_t v = 0; v < 4; ++v) bytes += result.device_of[index(v)] == 1 ? 100 : 0;
  EXPECT_EQ(bytes, 300);
  // b leaves: 10 + transfers 4 + launches 2 + 3 * 1. With a or d elsewhere instead: 10 + 2 + 1 + 9 + 1 + 1 = 24.
  EXPECT_DOUBLE_EQ(result.cost_us, 19);
  p.devices[0].budget_bytes = 0;
  EXPECT_THAT([&] { partition(p); }, testing::ThrowsMessage<DoesNotFit>(HasSubstr("budget_bytes is")));
}

TEST(Repair, SplitsShedsAndRecords) {
  Problem p = graph("a: b:a c:b d:c e!:d");
  // Takes at most two nodes at a time, and never c.
  const Backend backend = [&](const PartitionResult& plan, int32_t s) -> Refusal {
    const std::span<const int32_t> nodes = plan.nodes[index(s)];
    if (std::find(nodes.begin(), nodes.end(), 2) != nodes.end()) return {true, "no rule for it", {2}};
    if (nodes.size() > 1) return {true, "scratchpad too small", {}};
    return {};
  };
  const PartitionResult result = partition_with_repair(p, {}, backend);
  EXPECT_EQ(result.device_of[2], 0);
  for (size_t s = 0; s < result.subgraphs.size(); ++s)
    EXPECT_TRUE(result.subgraphs[s].device == 0 || result.nodes[s].size() == 1);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_EQ(result.notes[0].node, 2);
  EXPECT_THAT(result.notes[0].text, HasSubstr("moved off 'npu': its backend refused it: no rule for it"));
  p.time_of(2, 0) = kUnsupported;
  EXPECT_THAT([&] { partition_with_repair(p, {}, backend); },
              testing::ThrowsMessage<DoesNotFit>(HasSubstr("node 'c': the backend of 'npu' refused it")));
}

TEST(Questions, WhyAndWhatIf) {
  Problem p = graph("a: b!:a c:b");
  p.ops = {"conv", "sort", "conv"};
  p.devices[1].launch_us = 3;
  const PartitionResult result = partition(p);
  const Why why = explain_node(p, result, 1);
  EXPECT_EQ(why.device, 0);
  EXPECT_EQ(why.time_us[1], kUnsupported);
  ASSERT_FALSE(why.reasons.empty());
  EXPECT_EQ(why.reasons[0].label, "support");
  const std::vector<WhatIf> answers = what_if(p, {}, result);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].kind, "sort");
  // With b on the accelerator in 10 * (1/10) us: 3 + launch 3 = 6 us.
  EXPECT_DOUBLE_EQ(answers[0].cost_us, 6);
  EXPECT_DOUBLE_EQ(answers[0].gain_us, result.cost_us - 6);
  EXPECT_TRUE(what_if(p, {}, result, {"nothing like it"}).empty());
}

TEST(Checker, NoticesEveryKindOfDamage) {
  const Problem p = graph("a: b!:a c~:b d:c");
  const PartitionResult good = partition(p, parse_plan_options("take-all", "{}"));
  EXPECT_NO_THROW(check_partition(p, good));
  const auto damaged = [&](const std::function<void(PartitionResult&)>& damage) {
    PartitionResult bad = good;
    damage(bad);
    return [&p, bad] { check_partition(p, bad); };
  };
  using testing::ThrowsMessage;
  EXPECT_THAT(damaged([](PartitionResult& r) { r.cost_us += 1; }), ThrowsMessage<InternalError>(HasSubstr("it costs")));
  EXPECT_THAT(damaged([](PartitionResult& r) { r.device_of[0] = 0; }), ThrowsMessage<InternalError>(HasSubstr("'a'")));
  EXPECT_THAT(damaged([](PartitionResult& r) { std::swap(r.subgraphs[0], r.subgraphs[1]); }),
              ThrowsMessage<InternalError>(HasSubstr("breaks an invariant")));
  EXPECT_THAT(damaged([](PartitionResult& r) { r.crossings.pop_back(); }),
              ThrowsMessage<InternalError>(HasSubstr("a crossing is missing")));
  const auto clear = [](NodeLists& lists, size_t s) {
    const int32_t count = lists.begin[s + 1] - lists.begin[s];
    lists.nodes.erase(lists.nodes.begin() + lists.begin[s], lists.nodes.begin() + lists.begin[s + 1]);
    for (size_t k = s + 1; k < lists.begin.size(); ++k) lists.begin[k] -= count;
  };
  EXPECT_THAT(damaged([&](PartitionResult& r) { clear(r.inputs, r.subgraphs.size() - 1); }),
              ThrowsMessage<InternalError>(HasSubstr("lacks an input")));
  EXPECT_THAT(damaged([](PartitionResult& r) { r.outputs.begin.back() += 1; }),
              ThrowsMessage<InternalError>(HasSubstr("lists are not those of its subgraphs")));
  EXPECT_THAT(damaged([](PartitionResult& r) { r.subgraphs.back().start_us = 0, r.subgraphs.back().finish_us = 2; }),
              ThrowsMessage<InternalError>(HasSubstr("schedule")));
  EXPECT_THAT(damaged([&](PartitionResult& r) { clear(r.nodes, 1); }),
              ThrowsMessage<InternalError>(HasSubstr("is empty")));
}

TEST(BadInput, NamesTheNode) {
  using testing::ThrowsMessage;
  const auto with = [](const std::function<void(Problem&)>& change) {
    Problem p = graph("a: b:a c:b");
    change(p);
    return [p] { partition(p); };
  };
  EXPECT_THAT(with([](Problem& p) { p.inputs[0] = 2; }),
              ThrowsMessage<InvalidModel>(testing::AllOf(HasSubstr("cycle"), HasSubstr("'b'"), HasSubstr("'c'"))));
  EXPECT_THAT(with([](Problem& p) { p.inputs[0] = 1; }),
              ThrowsMessage<InvalidModel>(HasSubstr("node 'b': reads its own output")));
  EXPECT_THAT(with([](Problem& p) { p.inputs[0] = 7; }), ThrowsMessage<InvalidModel>(HasSubstr("node 'b': input 7")));
  EXPECT_THAT(with([](Problem& p) { p.ids[2] = "a"; }), ThrowsMessage<InvalidModel>(HasSubstr("node 'a': this id is")));
  EXPECT_THAT(
      with([](Problem& p) { p.time_of(1, 0) = -1; }),
      ThrowsMessage<InvalidModel>(HasSubstr("node 'b': time_us must be a finite number of at least 0, got -1")));
  EXPECT_THAT(with([](Problem& p) { p.time_of(1, 1) = std::numeric_limits<double>::quiet_NaN(); }),
              ThrowsMessage<InvalidModel>(HasSubstr("node 'b': time_us")));
  EXPECT_THAT(with([](Problem& p) { p.output_bytes[2] = -5; }),
              ThrowsMessage<InvalidModel>(HasSubstr("node 'c': output_bytes")));
  EXPECT_THAT(with([](Problem& p) { p.time_of(2, 0) = p.time_of(2, 1) = kUnsupported; }),
              ThrowsMessage<Unsupported>(HasSubstr("node 'c': no device supports it")));
  EXPECT_THAT(with([](Problem& p) {
                p.time_of(2, 0) = kUnsupported;
                p.exportable[5] = 0;
              }),
              ThrowsMessage<Unsupported>(HasSubstr("node 'c': no device can run it in any plan")));
  EXPECT_THAT(with([](Problem& p) { p.links[1].bytes_per_us = 0; }),
              ThrowsMessage<InvalidModel>(HasSubstr("link 'cpu' -> 'npu': bytes_per_us must be above 0")));
}

TEST(BadInput, EmptyProblemGivesAnEmptyPlan) {
  for (const char* s : {"topological", "depth", "merge", "cost", "take-all", "cpu-only"}) {
    EXPECT_TRUE(plan_sets("", s).empty());
  }
}

TEST(BadInput, Options) {
  using testing::ThrowsMessage;
  EXPECT_THAT([] { parse_plan_options("best", "{}"); }, ThrowsMessage<InvalidModel>(HasSubstr("there is no 'best'")));
  EXPECT_THAT([] { parse_plan_options("depth", R"({"order": "min"})"); },
              ThrowsMessage<InvalidModel>(
                  HasSubstr("strategy 'depth': the set of options has the unknown key 'order'; known are strict")));
  EXPECT_THAT([] { parse_plan_options("merge", R"({"policy": "most"})"); },
              ThrowsMessage<InvalidModel>(HasSubstr("must be one of all, largest, threshold")));
  EXPECT_THAT([] { parse_plan_options("merge", R"({"threshold": "3"})"); },
              ThrowsMessage<InvalidModel>(HasSubstr("strategy 'merge': threshold must be a finite number; found")));
}

TEST(BadInput, NamesTheDeviceOrThePin) {
  using testing::ThrowsMessage;
  const auto with = [](const std::function<void(Problem&)>& change) {
    Problem p = graph("a: b:a c!:b");
    p.pins.resize(3);
    change(p);
    return [p] { partition(p); };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(with([](Problem& p) { p.devices[1].launch_us = -1; }),
              ThrowsMessage<InvalidModel>(HasSubstr("device 'npu': launch_us must be from 0 to 1e15, got -1")));
  EXPECT_THAT(with([&](Problem& p) { p.devices[1].launch_us = nan; }),
              ThrowsMessage<InvalidModel>(HasSubstr("device 'npu': launch_us must be from 0 to 1e15, got nan")));
  EXPECT_THAT(with([&](Problem& p) { p.devices[0].budget_bytes = nan; }),
              ThrowsMessage<InvalidModel>(HasSubstr("device 'cpu': budget_bytes must be a number, got nan")));
  EXPECT_THAT(
      with([&](Problem& p) { p.links[2].latency_us = nan; }),
      ThrowsMessage<InvalidModel>(HasSubstr("link 'npu' -> 'cpu': latency_us must be from 0 to 1e15, got nan")));
  EXPECT_THAT(with([](Problem& p) {
                p.weight_bytes = {0, -3, 0};
              }),
              ThrowsMessage<InvalidModel>(HasSubstr("node 'b': weight_bytes must be a finite number of at least 0")));
  EXPECT_THAT(with([&](Problem& p) { p.macs[0] = nan; }),
              ThrowsMessage<InvalidModel>(HasSubstr("node 'a': macs must be a finite number of at least 0, got nan")));
  EXPECT_THAT(with([](Problem& p) {
                p.pins[1] = {5, true};
              }),
              ThrowsMessage<InvalidModel>(HasSubstr("node 'b': pinned to device 5 of 2")));
  EXPECT_THAT(with([](Problem& p) {
                p.pins[2] = {1, true};
              }),
              ThrowsMessage<Unsupported>(HasSubstr("node 'c': pinned to 'npu', which does not support it")));
  EXPECT_THAT(with([](Problem& p) {
                p.weight_bytes = {4, 4, 4};
                p.devices[0].budget_bytes = 5;
                p.devices[1].budget_bytes = 6;
              }),
              ThrowsMessage<DoesNotFit>(HasSubstr("budget_bytes is")));
}

TEST(BadInput, ALongCycleIsNamedInShort) {
  Problem p = generate_problem("chain", 200'000, 1, {2, 0.3, 0, true, false});
  p.inputs.insert(p.inputs.begin(), 199'999);
  for (size_t v = 1; v < p.input_begin.size(); ++v) ++p.input_begin[v];
  EXPECT_THAT([&] { partition(p); }, testing::ThrowsMessage<InvalidModel>(testing::AllOf(
                                         HasSubstr("the graph has a cycle"), HasSubstr("... (199988 more)"))));
}

TEST(Large, AMillionInARowAndAMillionConsumers) {
  const Problem row = generate_problem("chain", 1'000'000, 1);
  const Problem fan = generate_problem("fan", 1'000'002, 1);
  for (const char* strategy : {"topological", "depth", "merge", "cost", "take-all", "cpu-only"}) {
    const Options options = parse_plan_options(strategy, "{}");
    EXPECT_EQ(partition(row, options).device_of.size(), 1'000'000U) << strategy;
    // One node read by all, a million between, one that reads them all: at most four runs of two colours.
    EXPECT_LE(partition(fan, options).subgraphs.size(), 4U) << strategy;
  }
}

TEST(Json, ProblemsSurviveTheRoundTrip) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions options;
    options.devices = static_cast<int32_t>(1 + seed % 4);
    options.non_exportable = 0.2;
    const Problem p = generate_problem("transformer", 40, seed, options);
    const std::string json = problem_json(p);
    EXPECT_EQ(problem_json(parse_problem(json)), json);
  }
  const auto refused = [](const std::string& wrong, const std::string& message) {
    EXPECT_THAT([&] { parse_problem(wrong); }, testing::ThrowsMessage<InvalidModel>(HasSubstr(message)));
  };
  const std::string cpu = R"({"devices": [{"name": "cpu"}], "nodes": )";
  refused(std::string(100'000, '['), "is nested too deep; at most 8 levels are expected");
  refused(cpu + R"([{"id": "a", "time_us": {"cpu": 1}, "exportble": true}]})",
          "problem: node 'a' has the unknown key 'exportble'; did you mean 'exportable'?");
  refused(cpu + R"([{"id": "a", "time_us": {"cpu": 1}, "id": "b"}]})", "problem: nodes[0] has the key 'id' twice");
  refused(cpu + R"([{"time_us": {"cpu": 1}}]})", "problem: nodes[0] lacks 'id', the node's name");
  refused(cpu + R"([{"id": "a"}]})", "problem: node 'a' lacks 'time_us', its time by device");
  refused(R"({"nodes": [{"id": 3}], "devices": [{"name": "cpu"}]})",
          "problem: nodes[0].id must be a text that is not empty; found 3");
  refused(R"({"devices": [{"name": "cpu", "budget_bytes": -1}]})",
          "problem: devices[0].budget_bytes must be a finite number of at least 0; found -1");
  EXPECT_THAT([] { parse_problem("{\"devices\": ["); }, testing::ThrowsMessage<InvalidModel>(HasSubstr("not JSON")));
  EXPECT_THAT(
      [] {
        parse_problem(
            R"({"devices": [{"name": "cpu"}], "nodes": [{"id": "a", "inputs": ["x"], "time_us": {"cpu": 1}}]})");
      },
      testing::ThrowsMessage<InvalidModel>(HasSubstr("node 'a': input 'x' is not a node")));
  EXPECT_THAT([] { parse_problem(R"({"devices": [{"name": "cpu"}], "nodes": [{"id": "a", "time_us": {"tpu": 1}}]})"); },
              testing::ThrowsMessage<InvalidModel>(
                  HasSubstr("problem: node 'a': time_us names device 'tpu'; the problem has cpu")));
}

TEST(Json, LinksMayBeListedByPair) {
  const Problem p = parse_problem(R"({"devices": [{"name": "cpu"}, {"name": "npu"}, {"name": "dsp"}], "links": [
      {"from": "cpu", "to": "npu", "bytes_per_us": 100, "latency_us": 1},
      {"from": "cpu", "to": "dsp", "bytes_per_us": 50, "latency_us": 2},
      {"from": "dsp", "to": "cpu", "bytes_per_us": 25, "latency_us": 3}], "nodes": []})");
  EXPECT_EQ(p.link(1, 0).bytes_per_us, 100);  // the opposite direction
  EXPECT_EQ(p.link(2, 0).latency_us, 3);
  EXPECT_EQ(p.link(1, 2).latency_us, 3);  // through the general processor: 1 + 2
  EXPECT_NEAR(p.link(1, 2).bytes_per_us, 1 / (1.0 / 100 + 1.0 / 50), 1e-9);
}

TEST(Determinism, SameProblemSamePlan) {
  for (const char* kind : {"layered", "series-parallel", "random", "chain", "fan", "transformer"}) {
    const Problem p = generate_problem(kind, 500, 11, {3, 0.3, 0.05, true, true});
    for (const char* strategy : {"topological", "depth", "merge", "cost"}) {
      const Options options = parse_plan_options(strategy, "{}");
      PartitionResult a = partition(p, options);
      PartitionResult b = partition(p, options);
      a.plan_us = b.plan_us = 0;
      EXPECT_EQ(plan_json(p, options, a), plan_json(p, options, b)) << kind << " " << strategy;
    }
  }
}

}  // namespace
}  // namespace hetnn::plan
