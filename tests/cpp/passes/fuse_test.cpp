// Groups follow the deepest producer, keep shared values, and count bytes.
#include "hetnn/passes/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"

namespace hetnn::passes {
namespace {

using testing::ElementsAre;

class Fuse : public testing::Test {
 protected:
};

// Everything elementwise may follow everything.
const FuseOptions kEager = {
    .enabled = true, .can_follow = [](std::span<const ir::Node* const> launch, const ir::Node& follower) {
      return follower.op().has(ops::Trait::elementwise) && follower.output()->type() == launch.back()->output()->type();
    }};

std::vector<int> groups_of(const ir::Graph& graph) {
  std::vector<int> out;
  for (const ir::Node* node : graph.nodes()) {
    if (!node->is_constant()) out.push_back(node->launch);
  }
  return out;
}

ir::Graph placed(const char* body) {
  ir::Graph graph = ir::parse(body);
  for (ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    node->device = "cpu";
    node->subgraph = 0;
  }
  graph.stage = ir::Stage::cut;
  return graph;
}

// %late is two deep, %early one: the sum joins the late one, whose operands are all there by then.
constexpr const char* kTwoProducers = R"(graph @g {stage = imported} (%x: f32[4], %z: f32[4]) -> (%sum) {
  %first = relu(%x) : f32[4]
  %late = add(%first, %x) : f32[4]
  %early = relu(%z) : f32[4]
  %sum = add(%early, %late) : f32[4]
})";

TEST_F(Fuse, JoinsTheDeepestProducer) {
  ir::Graph graph = placed(kTwoProducers);
  const std::vector<report::FusionRow> fusions = fuse(graph, kEager);
  ir::verify(graph);
  EXPECT_EQ(graph.stage, ir::Stage::fused);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 0, 1, 0));
  ASSERT_EQ(fusions.size(), 1U);
  EXPECT_EQ(fusions[0].into, "first");
  EXPECT_THAT(fusions[0].nodes, ElementsAre("first", "late", "sum"));
  // One by one: 2 + 3 + 3 tensors of 16 bytes; together x, early in and sum out.
  EXPECT_EQ(fusions[0].bytes_before, 8 * 16);
  EXPECT_EQ(fusions[0].bytes_after, 3 * 16);
}

TEST_F(Fuse, OffGivesEveryNodeItsOwnGroup) {
  ir::Graph graph = placed(kTwoProducers);
  EXPECT_TRUE(fuse(graph, {.enabled = false, .can_follow = nullptr}).empty());
  ir::verify(graph);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 2, 3));
}

TEST_F(Fuse, EqualDepthsJoinTheEarlierNode) {
  ir::Graph graph = placed(R"(graph @g {stage = imported} (%x: f32[4], %z: f32[4]) -> (%sum) {
  %a = relu(%x) : f32[4]
  %b = relu(%z) : f32[4]
  %sum = add(%b, %a) : f32[4]
})");
  fuse(graph, kEager);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 0));
}

TEST_F(Fuse, AValueThatOthersReadOrTheGraphReturnsIsWritten) {
  ir::Graph graph = placed(R"(graph @g {stage = imported} (%x: f32[4]) -> (%shared, %b, %c) {
  %shared = relu(%x) : f32[4]
  %twice = relu(%shared) : f32[4]
  %b = relu(%twice) : f32[4]
  %c = add(%twice, %x) : f32[4]
})");
  EXPECT_TRUE(fuse(graph, kEager).empty());
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 2, 3));
}

TEST_F(Fuse, AnInputReadTwiceByOneNodeIsNotShared) {
  ir::Graph graph = placed(R"(graph @g {stage = imported} (%x: f32[4]) -> (%b) {
  %a = relu(%x) : f32[4]
  %b = add(%a, %a) : f32[4]
})");
  fuse(graph, kEager);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 0));
}

TEST_F(Fuse, TheBackendDecidesWhatCanFollow) {
  ir::Graph graph = placed(R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {2}} : f32[1,1,1,1]
  %c = conv2d(%x, %w) : f32[1,1,2,2]
  %r = relu(%c) : f32[1,1,2,2]
  %y = add(%r, %x) : f32[1,1,2,2]
})");
  FuseOptions options = kEager;
  options.can_follow = [](std::span<const ir::Node* const> launch, const ir::Node& follower) {
    return launch.front()->op().has(ops::Trait::compute) && follower.inputs().size() == 1;
  };
  const std::vector<report::FusionRow> fusions = fuse(graph, options);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 0, 1));
  ASSERT_EQ(fusions.size(), 1U);
  EXPECT_THAT(fusions[0].nodes, ElementsAre("c", "r"));
}

constexpr const char* kNorm = R"(graph @g {stage = imported} (%x: f32[4,2]) -> (%moved, %last) {
  %early = neg(%x) : f32[4,2]
  %y, %mean, %variance = batch_norm_training(%x) : f32[4,2], f32[2], f32[2]
  %moved = mul(%mean, %variance) : f32[2]
  %sum = add(%early, %y) : f32[4,2]
  %last = OPERATOR : f32[4,2]
})";

std::string with_last(const std::string& last) {
  std::string out = kNorm;
  return out.replace(out.find("OPERATOR"), 8, last);
}

FuseOptions behind_norms() {
  FuseOptions options = kEager;
  options.can_follow = [](std::span<const ir::Node* const> launch, const ir::Node& follower) {
    return kEager.can_follow(launch, follower) && launch.front()->op().name == "batch_norm_training";
  };
  return options;
}

TEST_F(Fuse, WhatNormsTellBesideIsWrittenWithWhatFollowsThem) {
  ir::Graph graph = placed(with_last("relu(%sum)").c_str());
  fuse(graph, behind_norms());
  ir::verify(graph);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 2, 1, 1));
  // The statistics' reader stands between the norm and what follows it.
  std::vector<std::string> order;
  for (const auto& chain : chains_of(graph)) order.push_back(chain.front()->name());
  EXPECT_THAT(order, ElementsAre("early", "y", "moved"));
}

TEST_F(Fuse, WhatWaitsForStatisticsDoesNotFollowTheirNorm) {
  ir::Graph graph = placed(with_last("mul(%sum, %moved)").c_str());
  fuse(graph, behind_norms());
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 2, 1, 3));
}

TEST_F(Fuse, StaysWithinASubgraph) {
  ir::Graph graph = placed(R"(graph @g {stage = imported} (%x: f32[4]) -> (%b) {
  %a = relu(%x) : f32[4]
  %b = relu(%a) : f32[4]
})");
  graph.find_value("b")->producer()->subgraph = 1;
  fuse(graph, kEager);
  ir::verify(graph);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1));
}

FuseOptions with_layers(bool deterministic = false) {
  FuseOptions options = kEager;
  options.can_follow = [](std::span<const ir::Node* const> launch, const ir::Node& follower) {
    const std::string_view anchor = launch.front()->op().name;
    return anchor == "conv2d" || (anchor == "nary" && follower.op().name == "relu");
  };
  options.combines = true;
  options.deterministic = deterministic;
  return options;
}

constexpr const char* kTreeOfSums = R"(graph @g {stage = imported} (%a: f32[4], %b: f32[4], %c: f32[4]) -> (%y) {
  %l = add(%a, %b) : f32[4]
  %r = sub(%a, %c) : f32[4]
  %s = add(%l, %r) : f32[4]
  %y = relu(%s) : f32[4]
})";

TEST_F(Fuse, TreesBecomeNaryLayersThatTakeFollowers) {
  ir::Graph graph = placed(kTreeOfSums);
  const std::vector<report::FusionRow> rows = fuse(graph, with_layers());
  ir::verify(graph);
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 0));
  const ir::Node& layer = *graph.find_value("s")->producer();
  EXPECT_EQ(layer.op().name, "nary");
  EXPECT_THAT(layer.reals("coefficients"), ElementsAre(1, 1, 1, -1));
  EXPECT_EQ(layer.subgraph, 0);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].into, "l");
  EXPECT_THAT(rows[0].nodes, ElementsAre("l", "r", "s", "y"));
  // One by one: three nodes of 3 tensors and one of 2, of 16 bytes each; together a, b and c in and y out.
  EXPECT_EQ(rows[0].bytes_before, 11 * 16);
  EXPECT_EQ(rows[0].bytes_after, 4 * 16);
}

TEST_F(Fuse, InOrderOnlyTheLeftOfATreeJoins) {
  ir::Graph graph = placed(kTreeOfSums);
  fuse(graph, with_layers(true));
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 1));
  EXPECT_EQ(graph.find_value("r")->producer()->op().name, "sub");
  EXPECT_TRUE(graph.find_value("s")->producer()->flag("deterministic"));
}

constexpr const char* kSumBehindConvolution =
    R"(graph @g {stage = imported} (%x: f32[1,1,2,2], %z: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {2}} : f32[1,1,1,1]
  %two = constant() {value = f32[1] {2}} : f32[1]
  %c = conv2d(%x, %w) : f32[1,1,2,2]
  %p = mul(%x, %z) : f32[1,1,2,2]
  %q = mul(%p, %x) : f32[1,1,2,2]
  %d = mul(%z, %two) : f32[1,1,2,2]
  %t = add(%c, %d) : f32[1,1,2,2]
  %y = sub(%q, %t) : f32[1,1,2,2]
})";

TEST_F(Fuse, ASumWithCoefficientsIsOneStepBehindItsProducer) {
  ir::Graph graph = placed(kSumBehindConvolution);
  const std::vector<report::FusionRow> rows = fuse(graph, with_layers());
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 1, 0));
  const ir::Node& sum = *graph.find_value("y")->producer();
  EXPECT_EQ(sum.op().name, "nary");
  EXPECT_THAT(sum.reals("coefficients"), ElementsAre(1, -1, -2));
  EXPECT_EQ(graph.find_value("q")->producer()->op().name, "nary");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].nodes, ElementsAre("c", "d", "t", "y"));
  EXPECT_THAT(rows[1].nodes, ElementsAre("p", "q"));
}

TEST_F(Fuse, ASumOfWhichOnlyThePartsCanFollowIsNoLayer) {
  ir::Graph graph = placed(kSumBehindConvolution);
  FuseOptions options = with_layers();
  options.can_follow = [](std::span<const ir::Node* const> launch, const ir::Node& follower) {
    return launch.front()->op().name == "conv2d" && follower.op().name != "nary";
  };
  fuse(graph, options);
  EXPECT_EQ(graph.find_value("y")->producer()->op().name, "sub");
  EXPECT_EQ(graph.find_value("t")->producer()->launch, graph.find_value("c")->producer()->launch);
}

TEST_F(Fuse, ADifferenceIsALayerOnlyBehindWhatIsTakenAway) {
  for (const bool deterministic : {false, true}) {
    ir::Graph graph = placed(R"(graph @g {stage = imported} (%x: f32[1,1,2,2], %z: f32[1,1,2,2]) -> (%y, %d) {
  %w = constant() {value = f32[1,1,1,1] {2}} : f32[1,1,1,1]
  %c = conv2d(%x, %w) : f32[1,1,2,2]
  %y = sub(%z, %c) : f32[1,1,2,2]
  %d = sub(%z, %x) : f32[1,1,2,2]
})");
    fuse(graph, with_layers(deterministic));
    EXPECT_THAT(groups_of(graph), ElementsAre(0, 0, 1));
    EXPECT_THAT(graph.find_value("y")->producer()->reals("coefficients"), ElementsAre(-1, 1));
    EXPECT_EQ(graph.find_value("d")->producer()->op().name, "sub");
  }
}

TEST_F(Fuse, ALayerTakesAHundredTermsAndLeavesTheRestToAnother) {
  std::string text =
      "graph @g {stage = imported} (%x: f32[4], %z: f32[4]) -> (%s149) {\n  %s0 = add(%x, %z) : f32[4]\n";
  for (int k = 1; k < 150; ++k)
    text += "  %s" + std::to_string(k) + " = add(%s" + std::to_string(k - 1) + ", %z) : f32[4]\n";
  ir::Graph graph = placed((text + "}").c_str());
  const std::vector<report::FusionRow> rows = fuse(graph, with_layers());
  std::vector<size_t> widths;
  for (const ir::Node* node : graph.nodes()) widths.push_back(node->inputs().size());
  EXPECT_THAT(widths, ElementsAre(52, 100));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].nodes.size() + rows[1].nodes.size(), 150U);
}

}  // namespace
}  // namespace hetnn::passes
