// The pass as a whole: constants folded, repetitions merged, dead nodes gone, names kept.
#include "hetnn/passes/canonicalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/fold_constants.h"
#include "hetnn/passes/merge_common.h"
#include "meaning.h"

namespace hetnn::passes {
namespace {

class Canonicalize : public testing::Test {
 protected:
};

std::string canonical(const char* source) {
  const ir::Graph before = ir::parse(source);
  ir::Graph after = before.clone();
  canonicalize(after);
  ir::verify(after);
  EXPECT_EQ(after.stage, ir::Stage::canonical);
  EXPECT_LE(difference(run(before, edge_inputs(before, 7)), run(after, edge_inputs(after, 7))), 1e-6);
  ir::Graph again = after.clone();
  EXPECT_TRUE(canonicalize(again).empty()) << "not a fixpoint";
  EXPECT_EQ(ir::print(again), ir::print(after));
  return ir::print(after);
}

TEST_F(Canonicalize, ConvolutionBiasAndScaleBecomeOneLayer) {
  EXPECT_EQ(canonical(R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %one = constant() {value = f32[2,1,1] {1, 2}} : f32[2,1,1]
  %two = constant() {value = f32[2,1,1] {0.5, 0.25}} : f32[2,1,1]
  %bias = add(%one, %two) : f32[2,1,1]
  %c = conv2d(%x, %w) : f32[1,2,2,2] loc("net.conv", "net.py":3)
  %y = add(%c, %bias) : f32[1,2,2,2]
})"),
            R"(graph @g {stage = canonical} (%x: f32[1,1,2,2]) -> (%c as "y") {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %y.const = constant() {value = f32[2] {1.5, 2.25}} : f32[2]
  %c = conv2d(%x, %w, %y.const) : f32[1,2,2,2] loc("net.conv", "net.py":3) also("y")
}
)");
}

// Between conversions: a convolution, whose sums f32 would round, and a function of one value, whose type means f32.
constexpr const char* kBetweenConversions = R"(graph @g {stage = imported} (%x: i8{0.02}[1,1,2,2]) -> (%y) {
  %w = constant() {value = i8[1,1,1,1] {7}, q_scale = [0.01]} : i8{0.01}[1,1,1,1]
  %b = constant() {value = f32[1] {0.00017}} : f32[1]
  %xr = dequantize(%x) : f32[1,1,2,2]
  %wr = dequantize(%w) : f32[1,1,1,1]
  %c = conv2d(%xr, %wr, %b) : f32[1,1,2,2]
  %q = quantize(%c) {q_scale = [0.05]} : i8{0.05}[1,1,2,2]
  %qr = dequantize(%q) : f32[1,1,2,2]
  %s = sigmoid(%qr) : f32[1,1,2,2]
  %y = quantize(%s) {q_scale = [0.004]} : i8{0.004}[1,1,2,2]
})";

std::string operators_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Node* node : graph.nodes()) {
    if (!node->is_constant()) out += (out.empty() ? "" : " ") + std::string(node->op().name);
  }
  return out;
}

TEST_F(Canonicalize, LayersBetweenConversionsBecomeIntegersAndSayHowFarTheyAreApart) {
  ir::Graph graph = ir::parse(kBetweenConversions);
  double apart = 0;
  for (const Firing& firing : canonicalize(graph)) apart = std::max(apart, firing.steps_apart);
  EXPECT_EQ(operators_of(graph), "conv2d sigmoid");
  // The bias is 0.85 steps of the sums, of which 250 make one of the result; beside it f32 loses nothing to speak of.
  EXPECT_NEAR(apart, 0.15 / 250, 1e-5);
}

TEST_F(Canonicalize, DeterministicKeepsLayersThatRoundOtherwise) {
  ir::Graph graph = ir::parse(kBetweenConversions);
  for (const Firing& firing : canonicalize(graph, {.deterministic = true}))
    EXPECT_EQ(firing.steps_apart, 0) << firing.rule;
  EXPECT_EQ(operators_of(graph), "dequantize conv2d quantize sigmoid");
  EXPECT_TRUE(canonicalize(graph, {.deterministic = true}).empty());
}

TEST_F(Canonicalize, ARoundingThatTheModelNamesIsOneOfIntegers) {
  std::string source = kBetweenConversions;
  const std::string named = "quantize(%c) {q_scale = [0.05]";
  source.insert(source.find(named) + named.size(), ", q_rounding = half_even_fp32");
  ir::Graph graph = ir::parse(source);
  canonicalize(graph, {.deterministic = true});
  EXPECT_EQ(operators_of(graph), "conv2d sigmoid");
}

TEST_F(Canonicalize, RepetitionsAndDeadNodesGo) {
  EXPECT_EQ(canonical(R"(graph @g {stage = imported} (%x: f32[2]) -> (%y, %q) {
  %a = relu(%x) : f32[2]
  %b = relu(%x) : f32[2]
  %dead = add(%a, %b) : f32[2]
  %y = add(%a, %b) : f32[2]
  %q = add(%b, %a) : f32[2]
})"),
            R"(graph @g {stage = canonical} (%x: f32[2]) -> (%y, %y as "q") {
  %a = relu(%x) : f32[2]
  %y = add(%a, %a) : f32[2]
}
)");
}

TEST_F(Canonicalize, EqualSmallConstantsAreOne) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %a = constant() {value = f32[2] {1, 2}} : f32[2]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = constant() {value = f32[1,2] {1, 2}} : f32[1,2]
  %s = add(%x, %a) : f32[2]
  %t = add(%s, %b) : f32[2]
  %y = add(%t, %c) : f32[1,2]
})");
  EXPECT_EQ(merge_common(graph), 1U);
  EXPECT_EQ(graph.node_count(), 5U);
}

TEST_F(Canonicalize, NodesThatReadOneValueAreNotComparedWithEachOther) {
  constexpr int64_t kRows = 20000;
  ir::Graph graph("g");
  ir::Rewriter rewriter(graph);
  ir::Value* x = rewriter.add_input("x", {DType::f32, {Dim(kRows)}});
  for (int64_t k = 0; k < kRows + 2; ++k) {
    const int64_t row = k % kRows;
    rewriter.add_output(rewriter.add("slice", {x}, {{"axis", Dim(0)}, {"start", Dim(row)}, {"end", Dim(row + 1)}}));
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(merge_common(graph), 2U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(Canonicalize, FoldsOnlyWhatIsWorthStoring) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = imported} () -> (%y) {
  %a = constant() {value = f32[1,8] {1, 2, 3, 4, 5, 6, 7, 8}} : f32[1,8]
  %b = constant() {value = f32[8,1] {1, 2, 3, 4, 5, 6, 7, 8}} : f32[8,1]
  %y = add(%a, %b) : f32[8,8]
})");
  EXPECT_EQ(fold_constants(graph, {.max_bytes = 255}), 0U);
  EXPECT_EQ(fold_constants(graph, {.max_bytes = 256, .outputs = false}), 0U);
  EXPECT_EQ(fold_constants(graph, {.max_bytes = 256}), 1U);
  EXPECT_EQ(graph.outputs()[0]->producer()->tensor("value").values<float>()[63], 16);
}

}  // namespace
}  // namespace hetnn::passes
