// Every rule fires where it should, keeps the meaning, and every guard of every rule refuses where it should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/all_rules.h"
#include "hetnn/passes/apply_rules.h"
#include "meaning.h"
#include "rule_cases.h"

namespace hetnn::passes {
namespace {

std::vector<const Cases*> all_cases() {
  return {&identity_cases(),  &weight_cases(),     &movement_cases(),    &activation_cases(), &prelu_cases(),
          &piecewise_cases(), &arithmetic_cases(), &convolution_cases(), &stride_cases(),     &pooling_cases(),
          &merging_cases(),   &quantized_cases(),  &conversion_cases(),  &combining_cases(),  &gelu_cases(),
          &piece_cases(),     &shape_cases(),      &block_cases(),       &moving_cases()};
}

const Rule& rule_named(std::string_view name) {
  for (const RuleStage& stage : all_rule_sets()) {
    for (const Rule& rule : stage.set->rules) {
      if (rule.name == name) return rule;
    }
  }
  throw InternalError(text("there is no rule ", name));
}

std::string operators_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Node* node : graph.nodes()) {
    if (!node->is_constant()) out += (out.empty() ? "" : " ") + std::string(node->op().name);
  }
  return out;
}

class Rules : public testing::Test {
 protected:
};

void check(const Fires& fires) {
  const ir::Graph before = ir::parse(fires.before);
  ir::Graph after = before.clone();
  const RuleSet one{"one", "", {rule_named(fires.rule)}};
  EXPECT_FALSE(apply_rules(after, {&one}).empty()) << "it does not fire";
  ir::verify(after);
  EXPECT_EQ(operators_of(after), fires.after);
  for (size_t k = 0; k < after.outputs().size(); ++k) {
    EXPECT_EQ(after.outputs()[k]->type(), before.outputs()[k]->type());
  }
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const auto agree = [&](const Inputs& inputs, const char* kind) {
      EXPECT_LE(difference(run(before, inputs), run(after, inputs)), fires.tolerance)
          << kind << " values, seed " << seed;
    };
    agree(random_inputs(before, seed), "random");
    if (fires.values >= Values::edge) agree(edge_inputs(before, seed), "edge");
    if (fires.values >= Values::special) agree(special_inputs(before, seed), "special");
  }
  // Printing and parsing back keeps what the rule made.
  EXPECT_EQ(ir::print(ir::parse(ir::print(after))), ir::print(after));
}

TEST_F(Rules, FireAndKeepTheMeaning) {
  for (const Cases* cases : all_cases()) {
    for (const Fires& fires : cases->fires) {
      SCOPED_TRACE(std::string(fires.rule) + " on\n" + std::string(fires.before));
      EXPECT_NO_THROW(check(fires));
    }
  }
}

// The text of the first guard that refuses at the last place in the graph where the rule's pattern fits.
std::string_view first_refusal(const Refuses& refuses) {
  const ir::Graph graph = ir::parse(refuses.graph);
  const Rule& rule = rule_named(refuses.rule);
  std::string_view first = "nothing: the pattern fits nowhere";
  for (ir::Node* node : graph.nodes()) {
    const std::optional<Match> found = match(rule.pattern, node, graph);
    if (!found) continue;
    first = "nothing: every guard holds";
    for (const Guard& guard : rule.guards) {
      if (guard.holds(*found)) continue;
      first = guard.text;
      break;
    }
  }
  return first;
}

TEST_F(Rules, AreRefusedByEachGuard) {
  std::set<std::pair<std::string_view, std::string_view>> refused;
  for (const Cases* cases : all_cases()) {
    for (const Refuses& refuses : cases->refuses) {
      SCOPED_TRACE(std::string(refuses.rule) + " on\n" + std::string(refuses.graph));
      EXPECT_NO_THROW(EXPECT_EQ(first_refusal(refuses), refuses.guard));
      refused.emplace(refuses.rule, refuses.guard);
    }
  }
  for (const RuleStage& stage : all_rule_sets()) {
    for (const Rule& rule : stage.set->rules) {
      for (const Guard& guard : rule.guards) {
        EXPECT_TRUE(refused.contains({rule.name, guard.text})) << rule.name << ": no test for \"" << guard.text << "\"";
      }
    }
  }
}

TEST_F(Rules, HaveNamesOfTheirOwnAndSayWhatTheyDo) {
  std::set<std::string_view> names;
  for (const RuleStage& stage : all_rule_sets()) {
    for (const Rule& rule : stage.set->rules) {
      EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
      EXPECT_FALSE(rule.equation.empty() || rule.exactness.empty()) << rule.name;
      for (std::string_view op : rule.pattern.ops)
        EXPECT_NE(ops::OpTable::global().find(op), nullptr) << rule.name << " looks for " << op;
    }
  }
}

// The census: a rule that never fired in the whole run fails it. Runs of a part of the tests are not counted.
class Census : public testing::Environment {
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*") return;
    const std::map<std::string, size_t> counts = firing_counts();
    for (const RuleStage& stage : all_rule_sets()) {
      for (const Rule& rule : stage.set->rules) {
        if (!counts.contains(std::string(rule.name))) ADD_FAILURE() << "rule " << rule.name << " never fired";
      }
    }
  }
};
const testing::Environment* const kCensus = testing::AddGlobalTestEnvironment(new Census);

}  // namespace
}  // namespace hetnn::passes
