// Patterns match what they say, the driver settles, and a rule that throws changes nothing.
#include "hetnn/passes/apply_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hetnn/base/error.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"

namespace hetnn::passes {
namespace {

class ApplyRules : public testing::Test {
 protected:
};

// Only for these tests: named so that the census of rules does not take them for real ones.
Rule relu_twice(ir::Value* (*rewrite)(const Match&, Build&)) {
  return {.name = "test_relu_twice",
          .equation = "relu(relu(x)) = relu(x)",
          .pattern = op("relu", {exclusive(op("relu", {any("x")}, "inner"))}),
          .guards = {},
          .exactness = "bit for bit",
          .rewrite = rewrite};
}

constexpr const char* kThree = R"(graph @g {stage = imported} (%x: f32[2]) -> (%c) {
  %a = relu(%x) : f32[2]
  %b = relu(%a) : f32[2]
  %c = relu(%b) : f32[2]
}
)";

TEST_F(ApplyRules, RunsToAFixpointAndKeepsNames) {
  ir::Graph graph = ir::parse(kThree);
  const RuleSet set{"test", "", {relu_twice([](const Match& m, Build& build) { return build.relu(m.value("x")); })}};
  EXPECT_EQ(apply_rules(graph, {&set}).size(), 2U);
  ir::verify(graph);
  EXPECT_EQ(ir::print(graph),
            "graph @g {stage = imported} (%x: f32[2]) -> (%c) {\n  %c = relu(%x) : f32[2] also(\"b\", \"a\")\n}\n");
  EXPECT_GE(firing_counts().at("test_relu_twice"), 2U);
}

TEST_F(ApplyRules, ARuleThatThrowsLeavesTheGraphAsItWas) {
  ir::Graph graph = ir::parse(kThree);
  const RuleSet set{"test", "", {relu_twice([](const Match& m, Build& build) -> ir::Value* {
                      build.relu(build.relu(m.value("x")));
                      throw Unsupported("no such luck.");
                    })}};
  EXPECT_THAT([&] { apply_rules(graph, {&set}); },
              testing::ThrowsMessage<Unsupported>("rule test_relu_twice at relu 'b': no such luck."));
  ir::verify(graph);
  EXPECT_EQ(ir::print(graph), kThree);
}

TEST_F(ApplyRules, AGuardThatThrowsLeavesTheGraphAsItWas) {
  ir::Graph graph = ir::parse(kThree);
  Rule rule = relu_twice([](const Match& m, Build& build) { return build.relu(m.value("x")); });
  rule.guards = {{"a question without an answer", [](const Match&) -> bool { throw InvalidModel("who knows."); }}};
  const RuleSet set{"test", "", {rule}};
  EXPECT_THAT([&] { apply_rules(graph, {&set}); },
              testing::ThrowsMessage<InvalidModel>("rule test_relu_twice at relu 'b': who knows."));
  ir::verify(graph);
  EXPECT_EQ(ir::print(graph), kThree);
}

TEST_F(ApplyRules, AJudgeThatThrowsLeavesTheGraphAsItWas) {
  ir::Graph graph = ir::parse(kThree);
  const RuleSet set{"test", "", {relu_twice([](const Match& m, Build& build) {
                      build.also_replace(m.value("inner"), build.relu(m.value("x")));
                      return build.relu(m.value("x"));
                    })}};
  ApplyOptions options;
  options.accept = [](const Rule&, const Match&, const std::vector<ir::Node*>& created) -> bool {
    throw DoesNotFit(text(created.size(), " are too many."));
  };
  EXPECT_THAT([&] { apply_rules(graph, {&set}, options); },
              testing::ThrowsMessage<DoesNotFit>("rule test_relu_twice at relu 'b': 2 are too many."));
  ir::verify(graph);
  EXPECT_EQ(ir::print(graph), kThree);
}

TEST_F(ApplyRules, WhatFiredBeforeARuleThrewStays) {
  ir::Graph graph = ir::parse(kThree);
  const RuleSet set{"test", "", {relu_twice([](const Match& m, Build& build) -> ir::Value* {
                      ir::Value* y = build.relu(m.value("x"));
                      if (m.root()->name() == "c") throw Unsupported("no such luck.");
                      return y;
                    })}};
  EXPECT_THAT([&] { apply_rules(graph, {&set}); },
              testing::ThrowsMessage<Unsupported>("rule test_relu_twice at relu 'c': no such luck."));
  ir::verify(graph);
  EXPECT_EQ(ir::print(graph), R"(graph @g {stage = imported} (%x: f32[2]) -> (%c) {
  %b = relu(%x) : f32[2] also("a")
  %c = relu(%b) : f32[2]
}
)");
}

TEST_F(ApplyRules, ARightSideOfAnotherTypeIsABugThatChangesNothing) {
  ir::Graph graph = ir::parse(kThree);
  const RuleSet set{"test", "", {relu_twice([](const Match& m, Build& build) {
                      return build.constant(m.value("x")->dtype(), {3}, std::vector<double>{1, 2, 3});
                    })}};
  EXPECT_THAT([&] { apply_rules(graph, {&set}); },
              testing::ThrowsMessage<InternalError>(testing::HasSubstr("'b' is f32[2], its replacement is f32[3]")));
  EXPECT_EQ(ir::print(graph), kThree);
}

TEST_F(ApplyRules, RulesThatGoRoundAreABug) {
  ir::Graph graph = ir::parse(kThree);
  const RuleSet set{"test",
                    "",
                    {{.name = "test_round",
                      .equation = "relu(x) = relu(x)",
                      .pattern = op("relu", {any("x")}),
                      .guards = {},
                      .exactness = "bit for bit",
                      .rewrite = [](const Match& m, Build& build) { return build.relu(m.value("x")); }}}};
  EXPECT_THAT([&] { apply_rules(graph, {&set}); },
              testing::ThrowsMessage<InternalError>(testing::HasSubstr("rules do not settle: test_round")));
}

TEST_F(ApplyRules, PatternsBindOneNameToOneValueInAnyOrderOfCommutativeInputs) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = imported} (%x: f32[2], %z: f32[2]) -> (%hit, %miss) {
  %r = relu(%x) : f32[2]
  %hit = add(%r, %x) : f32[2]
  %miss = add(%r, %z) : f32[2]
})");
  const Pattern pattern = op("add", {any("x"), op("relu", {any("x")})});
  EXPECT_TRUE(match(pattern, graph.find_value("hit")->producer(), graph));
  EXPECT_FALSE(match(pattern, graph.find_value("miss")->producer(), graph));
  EXPECT_FALSE(match(op("add", {any("x"), exclusive(op("relu"))}), graph.find_value("hit")->producer(), graph));
  EXPECT_FALSE(match(op("add", {any("x"), constant("c")}), graph.find_value("hit")->producer(), graph));
  EXPECT_EQ(to_string(op("add", {constant("c"), one_of({"relu", "conv2d"}, {any("x"), optional_constant("b")})})),
            "add(<c>, relu|conv2d(x, [b]))");
}

TEST_F(ApplyRules, AnOptionalConstantMayBeAbsentButNotComputed) {
  ir::Graph graph =
      ir::parse(R"(graph @g {stage = imported} (%x: f32[1,1,2,2], %b: f32[1]) -> (%none, %fixed, %varies) {
  %w = constant() {value = f32[1,1,1,1] {2}} : f32[1,1,1,1]
  %c = constant() {value = f32[1] {1}} : f32[1]
  %none = conv2d(%x, %w) : f32[1,1,2,2]
  %fixed = conv2d(%x, %w, %c) : f32[1,1,2,2]
  %varies = conv2d(%x, %w, %b) : f32[1,1,2,2]
})");
  const Pattern pattern = op("conv2d", {any("x"), constant("w"), optional_constant("b")});
  const auto none = match(pattern, graph.find_value("none")->producer(), graph);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->tensor("b"), nullptr);
  const auto fixed = match(pattern, graph.find_value("fixed")->producer(), graph);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->tensor("b")->values<float>()[0], 1);
  EXPECT_FALSE(match(pattern, graph.find_value("varies")->producer(), graph));
}

}  // namespace
}  // namespace hetnn::passes
