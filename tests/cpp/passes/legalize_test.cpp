// The search: everything that can be legal becomes legal, by the cheapest form, within bounds, the same every time.
#include "hetnn/passes/legalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "expect_error.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/target/target.h"
#include "meaning.h"

namespace hetnn::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Names = std::set<std::string, std::less<>>;

const Names kReluOnly = {"conv2d",     "linear", "matmul", "add",     "relu",    "max_pool2d",
                         "avg_pool2d", "concat", "slice",  "reshape", "identity"};

// A device that has these operators, convolutions only with constant weights, sums only of equal shapes. A node costs
// a pass over its bytes (none for views), or its multiply-accumulates if they take longer.
Oracle device(Names names) {
  return {.supports =
              [names](const ir::Node& node) {
                if (!names.contains(node.op().name)) return false;
                if (node.op().has(ops::Trait::elementwise)) {
                  for (const ir::Value* input : node.inputs()) {
                    if (input->shape() != node.output()->shape()) return false;
                  }
                  return true;
                }
                return !node.op().work || node.inputs().size() < 2 || node.constant_input(1) != nullptr;
              },
          .time_us =
              [](const ir::Node& node) {
                if (node.op().has(ops::Trait::view)) return 0.0;
                const Bindings bindings = {{"n", 2}, {"h", 16}};
                return 1 + std::max(static_cast<double>(target::bytes_touched(node, bindings)) / 1000,
                                    target::work_of(node, bindings).macs / 10000);
              }};
}
Oracle relu_only() { return device(kReluOnly); }
Oracle with(std::initializer_list<std::string> more) {
  Names names = kReluOnly;
  names.insert(more.begin(), more.end());
  return device(names);
}

std::string operators_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Node* node : graph.nodes()) {
    if (!node->is_constant()) out += (out.empty() ? "" : " ") + std::string(node->op().name);
  }
  return out;
}

std::vector<std::string> unsupported(const ir::Graph& graph, const Oracle& oracle) {
  std::vector<std::string> out;
  for (const ir::Node* node : graph.nodes()) {
    if (!node->is_constant() && !oracle.supports(*node)) out.push_back(node->name());
  }
  return out;
}

// conv, `middle` from %c to %m, conv.
std::string net(const std::string& middle) {
  return R"(graph @g {stage = imported} (%x: f32[1,2,5,4]) -> (%y) {
  %w = constant() {value = f32[3,2,1,1] {1, -2, 0.5, 1.5, -1, 0.25}} : f32[3,2,1,1]
  %v = constant() {value = f32[2,3,1,2] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 1, 3, -2, 1}} : f32[2,3,1,2]
  %c = conv2d(%x, %w) : f32[1,3,5,4]
)" + middle +
         R"(
  %y = conv2d(%m, %v) : f32[1,2,5,3]
})";
}

const LegalizeOptions kWithinTwo = {.inputs_within = {{"x", 2}}};

// With the model as written planned first, and every rewrite in doubt.
ChosenRewrites choose(const ir::Graph& canonical, const Oracle& oracle, RewriteMode mode,
                      const std::function<double(const ir::Graph&)>& plan, const LegalizeOptions& options = {},
                      int max_plans = 24) {
  const auto planned = [&](const ir::Graph& graph, const std::vector<report::RewriteRow>& rewrites) {
    PlannedRewrites out{plan(graph), {}};
    for (const report::RewriteRow& row : rewrites) out.doubtful.insert(row.node);
    return out;
  };
  const double without_us = plan(canonical);
  return choose_rewrites(
      canonical, oracle, mode, [=] { return without_us; }, planned, options, max_plans);
}

class Legalize : public testing::Test {
 protected:
  // Legalizes and checks the result against the original.
  ir::Graph legal(const std::string& source, const Oracle& oracle, const LegalizeOptions& options = {},
                  double tolerance = 1e-6) {
    const ir::Graph original = ir::parse(source);
    ir::Graph graph = original.clone();
    canonicalize(graph);
    rewrites = legalize(graph, oracle, options);
    ir::verify(graph);
    EXPECT_EQ(graph.stage, ir::Stage::legal);
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const Inputs inputs = random_inputs(original, seed);
      EXPECT_LE(difference(run(original, inputs), run(graph, inputs)), tolerance);
    }
    return graph;
  }
  std::vector<report::RewriteRow> rewrites;
};

TEST_F(Legalize, EveryPiecewiseLinearActivationBecomesConvolutionsAndRelu) {
  const char* const middles[] = {
      "%a = constant() {value = f32[3] {-2, 0.25, 1.5}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]",
      "%a = constant() {value = f32[3] {0.1, 0.25, 1}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]",
      "%a = constant() {value = f32[3] {2, 1.25, 3}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]",
      "%a = constant() {value = f32[1] {0.25}} : f32[1]\n %m = prelu(%c, %a) : f32[1,3,5,4]",
      "%m = leaky_relu(%c) {negative_slope = 0.1} : f32[1,3,5,4]",
      "%m = clamp(%c) {min = 0, max = 6} : f32[1,3,5,4]",
      "%m = clamp(%c) {min = -0.3, max = 0.7} : f32[1,3,5,4]",
      "%m = clamp(%c) {min = -0.3} : f32[1,3,5,4]",
      "%m = clamp(%c) {max = 0.3} : f32[1,3,5,4]",
      "%m = hardsigmoid(%c) : f32[1,3,5,4]",
      "%m = abs(%c) : f32[1,3,5,4]",
      "%n = neg(%c) : f32[1,3,5,4]\n %r = relu(%n) : f32[1,3,5,4]\n %m = add(%r, %c) : f32[1,3,5,4]",
      "%s = constant() {value = f32[] {0.3}} : f32[]\n %t = mul(%c, %s) : f32[1,3,5,4]\n %m = maximum(%c, %t) : "
      "f32[1,3,5,4]",
      "%s = constant() {value = f32[3,1,1] {0.3, 1, 2}} : f32[3,1,1]\n %m = maximum(%c, %s) : f32[1,3,5,4]",
      "%g = constant() {value = f32[3] {0.3, 1, 2}} : f32[3]\n %r = relu(%c) : f32[1,3,5,4]\n"
      " %m = batch_norm(%r, %g, %g, %g, %g) : f32[1,3,5,4]",
  };
  for (const char* middle : middles) {
    SCOPED_TRACE(middle);
    const ir::Graph graph = legal(net(middle), relu_only());
    EXPECT_THAT(unsupported(graph, relu_only()), ElementsAre());
    EXPECT_FALSE(rewrites.empty() && operators_of(graph).find("relu conv2d") == std::string::npos);
  }
}

TEST_F(Legalize, FormsThatLoseWhatIsSmallBesideWhatIsLargeNeedAKnownRange) {
  const char* const middles[] = {
      "%r = relu(%c) : f32[1,3,5,4]\n %d = sub(%c, %r) : f32[1,3,5,4]\n %m = maximum(%d, %r) : f32[1,3,5,4]",
      "%r = relu(%c) : f32[1,3,5,4]\n %d = add(%c, %r) : f32[1,3,5,4]\n %m = minimum(%d, %r) : f32[1,3,5,4]",
  };
  for (const char* middle : middles) {
    SCOPED_TRACE(middle);
    EXPECT_THAT(unsupported(legal(net(middle), relu_only()), relu_only()), ElementsAre("m"));
    EXPECT_THAT(unsupported(legal(net(middle), relu_only(), kWithinTwo), relu_only()), ElementsAre());
  }
}

TEST_F(Legalize, NodesAlikeAreSearchedOnce) {
  const auto trials_of = [&](const std::string& middle) {
    int trials = 0;
    Oracle counted = relu_only();
    counted.time_us = [&trials, plain = relu_only().time_us](const ir::Node& node) {
      // Weights between all three channels stand in forms that are tried and not taken.
      if (node.constant_input(1) && node.constant_input(1)->shape() == std::vector<int64_t>{3, 3, 1, 1}) ++trials;
      return plain(node);
    };
    legal(net(middle), counted, kWithinTwo);
    return trials;
  };
  const int once = trials_of("%m = leaky_relu(%c) {negative_slope = 0.1} : f32[1,3,5,4]");
  EXPECT_GT(once, 0);
  EXPECT_EQ(trials_of("%a = leaky_relu(%c) {negative_slope = 0.1} : f32[1,3,5,4]\n"
                      "%r = max_pool2d(%a) {kernel = [1,1]} : f32[1,3,5,4]\n"
                      "%m = leaky_relu(%r) {negative_slope = 0.1} : f32[1,3,5,4]"),
            once);
}

TEST_F(Legalize, FormsWithLargerConstantsThanAllowedAreNotTried) {
  Oracle plain = relu_only();
  plain.supports = [](const ir::Node& node) {
    return kReluOnly.contains(node.op().name) && (node.op().name != "conv2d" || node.integer("groups") == Dim(1));
  };
  const std::string source =
      net("%k = constant() {value = f32[3,1,1,1] {2, 3, 4}} : f32[3,1,1,1]\n"
          " %r = relu(%c) : f32[1,3,5,4]\n"
          " %d = conv2d(%r, %k) {groups = 3} : f32[1,3,5,4]\n"
          " %m = relu(%d) : f32[1,3,5,4]");
  EXPECT_THAT(unsupported(legal(source, plain), plain), ElementsAre());
  legal(source, plain, {.max_constant_bytes = 35});
  EXPECT_TRUE(rewrites.empty());
  legal(source, plain, {.max_constant_bytes = 36});
  EXPECT_EQ(rewrites.size(), 1U);
}

TEST_F(Legalize, WhatTheDeviceHasStaysAsItIs) {
  const ir::Graph graph =
      legal(net("%a = constant() {value = f32[3] {-2, 0.25, 1.5}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]"),
            with({"prelu"}));
  // A slope is no full operand, so the test device does not take it for elementwise: say so by hand.
  Oracle native = relu_only();
  native.supports = [](const ir::Node& node) {
    return kReluOnly.contains(node.op().name) || node.op().has(ops::Trait::channelwise);
  };
  EXPECT_EQ(operators_of(legal(net("%a = constant() {value = f32[3] {-2, 0.25, 1.5}} : f32[3]\n"
                                   " %m = prelu(%c, %a) : f32[1,3,5,4]"),
                               native)),
            "conv2d prelu conv2d");
  EXPECT_TRUE(rewrites.empty());
}

TEST_F(Legalize, TheCheapestFormIsTakenAndSaysWhy) {
  const std::string below =
      net("%a = constant() {value = f32[3] {0.1, 0.25, 1}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]");
  LegalizeOptions apart = kWithinTwo;
  apart.disabled_rules = {"branch_into_producer"};
  EXPECT_EQ(operators_of(legal(below, relu_only(), apart)), "conv2d conv2d relu add conv2d");
  ASSERT_EQ(rewrites.size(), 1U);
  EXPECT_EQ(rewrites[0].rule, "prelu_depthwise_branches");
  EXPECT_EQ(rewrites[0].node, "m");
  EXPECT_EQ(rewrites[0].op, "prelu");
  EXPECT_THAT(rewrites[0].why, HasSubstr("the device has no such prelu; prelu_depthwise_branches costs"));
  EXPECT_THAT(rewrites[0].why, HasSubstr("the next best, "));

  // Mixed slopes: without a subtraction one signed branch is cheaper than two; with it, nothing changes here.
  const std::string mixed =
      net("%a = constant() {value = f32[3] {-2, 0.25, 1.5}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]");
  EXPECT_EQ(operators_of(legal(mixed, relu_only(), apart)), "conv2d conv2d relu conv2d add conv2d");
  EXPECT_EQ(rewrites[0].form, "prelu_one_branch");

  // Slopes above 1 only: with a subtraction nothing is negated by arithmetic.
  const std::string above =
      net("%a = constant() {value = f32[3] {2, 1.25, 3}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]");
  EXPECT_EQ(operators_of(legal(above, with({"sub"}), apart)), "conv2d conv2d relu sub conv2d");
  EXPECT_EQ(rewrites[0].rule, "prelu_depthwise_branches");

  // A maximum is cheapest where there is one.
  EXPECT_EQ(operators_of(legal(below, with({"maximum"}), apart)), "conv2d conv2d maximum conv2d");
  EXPECT_EQ(rewrites[0].form, "prelu_maximum + multiply_as_depthwise");
}

TEST_F(Legalize, OfUnknownMagnitudesTheFormsKeepInfinities) {
  LegalizeOptions apart;
  apart.disabled_rules = {"branch_into_producer"};
  const auto form_of = [&](const char* slopes, const Oracle& oracle) {
    legal(net(std::string("%a = constant() {value = f32[3] ") + slopes +
              "} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]"),
          oracle, apart);
    return rewrites.at(0).form;
  };
  EXPECT_EQ(form_of("{0.1, 0.25, 0.5}", relu_only()), "prelu_scaled_and_rest");
  EXPECT_EQ(form_of("{0.1, 0.25, 1}", with({"sub"})), "prelu_two_relus");
  EXPECT_EQ(form_of("{-0.1, -2, -1}", relu_only()), "prelu_two_relus");
  EXPECT_EQ(form_of("{1.5, 2, 3}", with({"sub"})), "prelu_depthwise_branches");
  EXPECT_EQ(form_of("{-2, 0, 1.5}", relu_only()), "prelu_two_sides");
}

TEST_F(Legalize, WithoutDepthwiseTheBranchesAreFullConvolutions) {
  Oracle plain = relu_only();
  plain.supports = [](const ir::Node& node) {
    return relu_only().supports(node) && !(node.attrs().contains("groups") && node.integer("groups") != Dim(1));
  };
  LegalizeOptions options = kWithinTwo;
  options.disabled_rules = {"grouped_as_plain", "branch_into_producer"};
  const std::string below =
      net("%a = constant() {value = f32[3] {0.1, 0.25, 1}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]");
  const ir::Graph graph = legal(below, plain, options);
  EXPECT_EQ(rewrites.at(0).rule, "prelu_dense_branches");
  EXPECT_THAT(unsupported(graph, plain), ElementsAre());
  options.disabled_rules.push_back("prelu_dense_branches");
  legal(below, plain, options);
  EXPECT_EQ(rewrites.at(0).rule, "prelu_four_convolutions");
  options.inputs_within.clear();  // then 0 * inf might spread
  EXPECT_THAT(unsupported(legal(below, plain, options), plain), ElementsAre("m"));
}

TEST_F(Legalize, TheBranchGoesIntoTheProducerWhereThatIsCheaper) {
  const std::string below =
      net("%a = constant() {value = f32[3] {0.1, 0.25, 1}} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]");
  Oracle launches = relu_only();
  // Every node costs the same but movement, which is free: one convolution less is worth it.
  launches.time_us = [](const ir::Node& node) { return node.op().has(ops::Trait::movement) ? 0.0 : 1.0; };
  EXPECT_EQ(operators_of(legal(below, launches, kWithinTwo)), "conv2d slice slice relu add conv2d");
  Oracle arithmetic = relu_only();
  arithmetic.time_us = [](const ir::Node& node) {
    return target::work_of(node, {}).macs + (node.op().has(ops::Trait::movement) ? 1e6 : 1);
  };
  EXPECT_EQ(operators_of(legal(below, arithmetic, kWithinTwo)), "conv2d conv2d relu add conv2d");
}

TEST_F(Legalize, AFoldThatIsDearerIsBuiltOnceForAllPlans) {
  const std::string two =
      net("%p = leaky_relu(%c) {negative_slope = 0.1} : f32[1,3,5,4]\n"
          "%q = leaky_relu(%c) {negative_slope = 0.3} : f32[1,3,5,4]\n"
          "%m = add(%p, %q) : f32[1,3,5,4]");
  int built = 0, plans = 0;
  Oracle arithmetic = relu_only();
  arithmetic.time_us = [&built](const ir::Node& node) {
    if (node.op().name == "conv2d" && node.output()->shape()[1] == Dim(6)) ++built;
    return target::work_of(node, {}).macs + (node.op().has(ops::Trait::movement) ? 1e6 : 1);
  };
  legal(two, arithmetic, kWithinTwo);
  const int of_one = built;
  EXPECT_EQ(of_one, 2);
  built = 0;
  const auto plan = [&plans](const ir::Graph& graph) {
    ++plans;
    return 100.0 - static_cast<double>(graph.node_count());
  };
  choose(ir::parse(two), arithmetic, RewriteMode::automatic, plan, kWithinTwo);
  EXPECT_EQ(plans, 4);
  EXPECT_EQ(built, of_one);
}

TEST_F(Legalize, NeighboursFoldIntoConvolutions) {
  // lo of the clamp goes into the first convolution's bias, hi and the reflection into the second.
  EXPECT_EQ(operators_of(legal(net("%m = clamp(%c) {min = 0.3, max = 0.7} : f32[1,3,5,4]"), relu_only())),
            "conv2d relu conv2d relu conv2d");
}

TEST_F(Legalize, AFormThatHoldsInARangeIsTakenWhereTheRangeIsKnown) {
  legal(net("%m = clamp(%c) {min = 0, max = 6} : f32[1,3,5,4]"), relu_only());
  EXPECT_EQ(rewrites.at(0).rule, "clamp_from_relu");
  const auto of_bounded = [&](const std::string& factor) {
    legal(net("%s = sigmoid(%c) : f32[1,3,5,4]\n %f = constant() {value = f32[] {" + factor +
              "}} : f32[]\n %p = mul(%s, %f) : f32[1,3,5,4]\n %m = clamp(%p) {min = 0, max = 6} : f32[1,3,5,4]"),
          relu_only());
    return rewrites.back();
  };
  EXPECT_EQ(of_bounded("1000").rule, "clamp_from_zero");
  EXPECT_THAT(of_bounded("1000").why, testing::HasSubstr("and holds since no |x| is above 1000"));
  EXPECT_EQ(of_bounded("1e12").rule, "clamp_from_relu");  // beyond 2^24 units of 6, x - 6 would be rounded
}

TEST_F(Legalize, WhatHasNoLegalFormStays) {
  const ir::Graph graph = legal(net("%m = hardswish(%c) : f32[1,3,5,4]"), relu_only());
  EXPECT_THAT(unsupported(graph, relu_only()), ElementsAre("m"));
  EXPECT_TRUE(rewrites.empty());
  EXPECT_THAT(unsupported(legal(net("%m = hardswish(%c) : f32[1,3,5,4]"), with({"mul"})), with({"mul"})),
              ElementsAre());
  ASSERT_EQ(rewrites.size(), 1U);
  EXPECT_EQ(rewrites[0].form, "hardswish_as_product + hardsigmoid_from_clamp + clamp_from_relu");
}

TEST_F(Legalize, ExcludedNodesAndDisabledRulesAreLeftAlone) {
  const std::string source = net("%m = abs(%c) : f32[1,3,5,4]");
  LegalizeOptions options;
  options.excluded_nodes = {"m"};
  EXPECT_EQ(operators_of(legal(source, relu_only(), options)), "conv2d abs conv2d");
  options = {};
  options.disabled_rules = {"abs_from_relu"};
  EXPECT_EQ(operators_of(legal(source, relu_only(), options)), "conv2d abs conv2d");
  options = {};
  options.max_depth = 1;  // the negation would be the second level
  EXPECT_EQ(operators_of(legal(source, relu_only(), options)), "conv2d abs conv2d");
  options = {};
  options.max_trials = 0;
  EXPECT_EQ(operators_of(legal(source, relu_only(), options)), "conv2d abs conv2d");
}

TEST_F(Legalize, DisabledRulesMustBeThere) {
  LegalizeOptions options;
  options.disabled_rules = {"abs_from_relu", "prelu_two_branches"};
  EXPECT_THAT([&] { legal(net("%m = abs(%c) : f32[1,3,5,4]"), relu_only(), options); },
              testing::ThrowsMessage<InvalidModel>("disabled_rules: legalization has no rule 'prelu_two_branches'; the "
                                                   "nearest names are prelu_one_branch, prelu_dense_branches, "
                                                   "prelu_two_relus. docs/rules.md lists all of them."));
  // Rules that always run cannot be left out; rules that fold neighbours together can.
  EXPECT_ERROR(check_disabled_rules({"relu_twice"}), InvalidModel, "legalization has no rule 'relu_twice'");
  check_disabled_rules({"depthwise_into_layer", "branch_into_producer"});
}

TEST_F(Legalize, SlopesThatAreNoNumbersStayAsTheyAre) {
  for (const char* slopes : {"{nan, 0.5, 1}", "{0.1, inf, 1}", "{-inf, 0.5, 2}", "{nan, inf, -inf}"}) {
    SCOPED_TRACE(slopes);
    const ir::Graph graph = legal(net(std::string("%a = constant() {value = f32[3] ") + slopes +
                                      "} : f32[3]\n %m = prelu(%c, %a) : f32[1,3,5,4]"),
                                  with({"maximum", "sub"}));
    EXPECT_THAT(unsupported(graph, with({"maximum", "sub"})), ElementsAre("m"));
    EXPECT_TRUE(rewrites.empty());
  }
  EXPECT_THAT(
      unsupported(legal(net("%m = leaky_relu(%c) {negative_slope = inf} : f32[1,3,5,4]"), relu_only()), relu_only()),
      ElementsAre("m"));
}

TEST_F(Legalize, WhatIsEmptyStaysAsItIs) {
  const char* const middles[] = {
      "prelu(%x, %a)",   "abs(%x)",       "clamp(%x) {min = -0.5, max = 2}", "clamp(%x) {min = 0.5, max = 2}",
      "hardsigmoid(%x)", "leaky_relu(%x)"};
  for (const char* shape : {"f32[0,3,4,2]", "f32[2,3,0,2]", "f32[2,3,4,0]", "f32[0,3]", "f32[3,3,0]"}) {
    for (const char* middle : middles) {
      SCOPED_TRACE(text(middle, " of ", shape));
      const ir::Graph graph =
          legal(text("graph @g {stage = imported} (%x: ", shape, ") -> (%y) {\n",
                     "  %a = constant() {value = f32[3] {-1, 0.25, 2}} : f32[3]\n  %y = ", middle, " : ", shape, "\n}"),
                relu_only());
      EXPECT_THAT(unsupported(graph, relu_only()), ElementsAre("y"));
      EXPECT_TRUE(rewrites.empty());
    }
  }
}

TEST_F(Legalize, ManyActivationsTakeWorkInProportion) {
  const auto chain = [](int count) {
    std::string out = "graph @g {stage = canonical} (%x0: f32[1,4,8,8]) -> (%x" + std::to_string(count) +
                      ") {\n  %a = constant() {value = f32[4] {-1, 0.25, 2, 0.5}} : f32[4]\n";
    for (int k = 0; k < count; ++k) {
      const char* const kinds[] = {"prelu(%x#, %a)", "clamp(%x#) {min = -0.5, max = 2}", "abs(%x#)",
                                   "hardsigmoid(%x#)"};
      std::string node = kinds[k % 4];
      node.replace(node.find('#'), 1, std::to_string(k));
      out += text("  %x", k + 1, " = ", node, " : f32[1,4,8,8]\n");
    }
    return ir::parse(out + "}");
  };
  // Questions to the device are counted, not seconds.
  const auto questions = [&](int count) {
    int64_t asked = 0;
    Oracle counting = relu_only();
    counting.supports = [&asked, inner = counting.supports](const ir::Node& node) { return ++asked, inner(node); };
    ir::Graph graph = chain(count);
    EXPECT_EQ(legalize(graph, counting).size(), static_cast<size_t>(count));
    ir::verify(graph);
    EXPECT_THAT(unsupported(graph, relu_only()), ElementsAre());
    return asked;
  };
  const int64_t few = questions(20), many = questions(2000);
  EXPECT_LE(many, 110 * few);
}

TEST_F(Legalize, ChoosingAmongManyActivationsPlansABoundedNumberOfTimes) {
  std::string source = "graph @g {stage = canonical} (%x0: f32[1,4,8,8]) -> (%x400) {\n";
  for (int k = 0; k < 400; ++k) source += text("  %x", k + 1, " = abs(%x", k, ") : f32[1,4,8,8]\n");
  int plans = 0;
  const auto plan = [&plans](const ir::Graph& graph) {
    ++plans;
    return static_cast<double>(graph.node_count());
  };
  const ChosenRewrites chosen = choose(ir::parse(source + "}"), relu_only(), RewriteMode::automatic, plan);
  EXPECT_EQ(plans, 25);  // without, with all, and 23 with one more left out
  EXPECT_EQ(chosen.taken.size() + chosen.refused.size(), 400U);
}

TEST_F(Legalize, WhatSurelyPaysIsNotLeftOut) {
  std::string source = "graph @g {stage = canonical} (%x0: f32[1,4,8,8]) -> (%x9) {\n";
  for (int k = 0; k < 9; ++k) source += text("  %x", k + 1, " = abs(%x", k, ") : f32[1,4,8,8]\n");
  int plans = 0;
  const auto plan = [&plans](const ir::Graph& graph, const std::vector<report::RewriteRow>&) {
    ++plans;
    // Only x4 is in doubt, and better as it is.
    const bool all = operators_of(graph).find("abs") == std::string::npos;
    return PlannedRewrites{all ? 2.0 : 1.0, {"x4"}};
  };
  const ChosenRewrites chosen = choose_rewrites(
      ir::parse(source + "}"), relu_only(), RewriteMode::automatic, [] { return 10; }, plan);
  EXPECT_EQ(plans, 2);  // with all, and without x4
  EXPECT_EQ(chosen.taken.size(), 8U);
  ASSERT_EQ(chosen.refused.size(), 1U);
  EXPECT_EQ(chosen.refused[0].node, "x4");
}

TEST_F(Legalize, ManyActivationsAreLeftOutByKind) {
  // 300 of two kinds in one chain: a plan is cheaper without those of one of them.
  std::string source = "graph @g {stage = canonical} (%x0: f32[1,4,8,8]) -> (%x300) {\n";
  for (int k = 0; k < 300; ++k) {
    source += k % 3 == 0 ? text("  %x", k + 1, " = hardsigmoid(%x", k, ") : f32[1,4,8,8]\n")
                         : text("  %x", k + 1, " = abs(%x", k, ") : f32[1,4,8,8]\n");
  }
  const auto plan = [](const ir::Graph& graph) {
    double cost = 0;
    for (const ir::Node* node : graph.nodes())
      cost += node->op().name == "abs" ? 9 : node->op().name == "hardsigmoid" ? 1 : node->is_constant() ? 0 : 2;
    return cost;
  };
  const ChosenRewrites chosen = choose(ir::parse(source + "}"), relu_only(), RewriteMode::automatic, plan);
  EXPECT_EQ(chosen.taken.size(), 200U);
  EXPECT_EQ(chosen.refused.size(), 100U);
  for (const auto& row : chosen.taken) EXPECT_EQ(row.op, "abs");
}

TEST_F(Legalize, ThousandsOfNodesArePlannedAFewTimes) {
  std::string source = "graph @g {stage = canonical} (%x0: f32[1,4,8,8]) -> (%x8000) {\n";
  for (int k = 0; k < 8000; ++k) source += text("  %x", k + 1, " = abs(%x", k, ") : f32[1,4,8,8]\n");
  int plans = 0;
  const auto plan = [&plans](const ir::Graph& graph) {
    ++plans;
    return static_cast<double>(graph.node_count());
  };
  choose(ir::parse(source + "}"), relu_only(), RewriteMode::automatic, plan);
  EXPECT_EQ(plans, 7);  // without, and 24 of 2,000 nodes are as much as 6 of 8,000
}

TEST_F(Legalize, NodesThatARangeWouldMakeLegalAreNamed) {
  const auto plan = [](const ir::Graph& graph) { return static_cast<double>(graph.node_count()); };
  const std::string source = R"(graph @g {stage = canonical} (%x: f32[1,4,8,8], %y: f32[1,4,8,8]) -> (%m) {
  %m = maximum(%x, %y) : f32[1,4,8,8]
})";
  ChosenRewrites chosen = choose(ir::parse(source), relu_only(), RewriteMode::automatic, plan);
  EXPECT_TRUE(chosen.taken.empty());
  ASSERT_EQ(chosen.out_of_range.size(), 1U);
  EXPECT_EQ(chosen.out_of_range[0].node, "m");
  EXPECT_EQ(chosen.out_of_range[0].within, 16);
  EXPECT_GT(chosen.out_of_range[0].largest, 1e30);
  chosen = choose(ir::parse(source), relu_only(), RewriteMode::always, plan, {.inputs_within = {{"x", 16}, {"y", 16}}});
  EXPECT_EQ(chosen.taken.size(), 1U);
  EXPECT_TRUE(chosen.out_of_range.empty());
}

TEST_F(Legalize, IsTheSameEveryTime) {
  const std::string source = net("%m = clamp(%c) {min = 0.3, max = 0.7} : f32[1,3,5,4]");
  EXPECT_EQ(ir::print(legal(source, relu_only())), ir::print(legal(source, relu_only())));
}

TEST_F(Legalize, RewritesAreChosenByTheCostOfThePlan) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = imported} (%x: f32[1,2,3,3]) -> (%b) {
  %a = abs(%x) : f32[1,2,3,3]
  %r = tanh(%a) : f32[1,2,3,3]
  %b = hardsigmoid(%r) : f32[1,2,3,3]
})");
  canonicalize(graph);
  int plans = 0;
  // A plan costs what a test says: abs is better rewritten, hardsigmoid is not.
  const auto plan = [&](double rewritten_abs, double rewritten_sigmoid) {
    return [&plans, rewritten_abs, rewritten_sigmoid](const ir::Graph& legal_graph) {
      ++plans;
      double cost = 10;
      const std::string operators = operators_of(legal_graph);
      if (operators.find("abs") == std::string::npos) cost += rewritten_abs;
      if (operators.find("hardsigmoid") == std::string::npos) cost += rewritten_sigmoid;
      return cost;
    };
  };
  ChosenRewrites chosen = choose(graph, relu_only(), RewriteMode::automatic, plan(-3, 2));
  ASSERT_EQ(chosen.taken.size(), 1U);
  EXPECT_EQ(chosen.taken[0].node, "a");
  ASSERT_EQ(chosen.refused.size(), 1U);
  EXPECT_EQ(chosen.refused[0].node, "b");
  EXPECT_EQ(chosen.cost_without_us, 10);
  EXPECT_EQ(chosen.cost_us, 7);

  chosen = choose(graph, relu_only(), RewriteMode::automatic, plan(3, 2));
  EXPECT_TRUE(chosen.taken.empty());
  EXPECT_EQ(chosen.refused.size(), 2U);
  EXPECT_EQ(chosen.cost_us, 10);
  chosen = choose(graph, relu_only(), RewriteMode::always, plan(3, 2));
  EXPECT_EQ(chosen.taken.size(), 2U);
  chosen = choose(graph, relu_only(), RewriteMode::off, plan(-3, -2));
  EXPECT_TRUE(chosen.taken.empty());
  plans = 0;
  choose(graph, relu_only(), RewriteMode::automatic, plan(-3, 2), {}, 2);
  EXPECT_EQ(plans, 3);  // without, with all, and one more
  EXPECT_EQ(rewrite_mode_from_name("auto"), RewriteMode::automatic);
  EXPECT_EQ(rewrite_mode_from_name("sometimes"), std::nullopt);
}

}  // namespace
}  // namespace hetnn::passes
