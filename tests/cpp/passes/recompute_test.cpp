// What is kept behind a result: which values are computed again, where, and that none changes.
#include "hetnn/passes/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hetnn/base/error.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "meaning.h"

namespace hetnn::passes {
namespace {

// Of a, b and c, 1600 bytes each, the values behind the loss are made; r is a view of b, s a state's next value.
constexpr const char* kStep =
    R"(graph @g {stage = canonical, mutates "n" by "s" from f32[] {0}} (%x: f32[4,100], %n: f32[]) -> (%s, %loss, %g) {
  %s = add(%n, %n) : f32[]
  %a = exp(%x) : f32[4,100]
  %b = tanh(%a) : f32[4,100]
  %r = reshape(%b) {shape = [100,4]} : f32[100,4]
  %c = sigmoid(%b) : f32[4,100]
  %loss = sum(%c) {axes = [0,1], keepdim = false} : f32[]
  %p = mul(%c, %b) : f32[4,100]
  %q = mul(%p, %a) : f32[4,100]
  %t = reshape(%r) {shape = [4,100]} : f32[4,100]
  %g = mul(%q, %t) : f32[4,100]
})";

double equal_us(const ir::Node&) { return 1; }

TEST(Recompute, NothingWhereTheBudgetHolds) {
  ir::Graph graph = ir::parse(kStep);
  const std::string before = ir::print(graph);
  const Kept kept = recompute(graph, 4800, equal_us);
  EXPECT_EQ(kept.before_bytes, 4800);
  EXPECT_EQ(kept.after_bytes, 4800);
  EXPECT_EQ(kept.nodes, 0U);
  EXPECT_EQ(ir::print(graph), before);
}

TEST(Recompute, CopiesStandAheadOfTheFirstReader) {
  const ir::Graph before = ir::parse(kStep);
  ir::Graph graph = before.clone();
  const Kept kept = recompute(graph, 3200, equal_us);
  ir::verify(graph);
  EXPECT_EQ(kept.after_bytes, 3200);
  EXPECT_EQ(kept.nodes, 1U);
  EXPECT_EQ(difference(run(before, random_inputs(before, 1)), run(graph, random_inputs(graph, 1))), 0);
  EXPECT_THAT(ir::print(graph), testing::HasSubstr(R"(  %loss = sum(%c) {axes = [0,1]} : f32[]
  %p = mul(%c, %b) : f32[4,100]
  %a.again = exp(%x) : f32[4,100]
  %q = mul(%p, %a.again) : f32[4,100]
)"));
}

// A node that gives a size its value runs once.
TEST(Recompute, RefusesABudgetBelowWhatCannotBeComputedAgain) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = canonical, symbols = [u: 0..9 = 4]} (%x: f32[9]) -> (%loss, %g, %h) {
  %i = nonzero(%x) {count = u} : i64[u,1]
  %f = cast(%i) {to = f32} : f32[u,1]
  %loss = sum(%f) {axes = [0,1], keepdim = false} : f32[]
  %g = mul(%f, %f) : f32[u,1]
  %h = cast(%i) {to = i32} : i32[u,1]
})");
  try {
    recompute(graph, 16, equal_us);
    FAIL() << "nothing was thrown";
  } catch (const DoesNotFit& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("checkpoint is 16 bytes; of 48 that gradients need 48 stay in memory"));
  }
}

}  // namespace
}  // namespace hetnn::passes
