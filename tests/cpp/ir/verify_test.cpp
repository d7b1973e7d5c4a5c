// The verifier: each rule of each stage is broken once, and the text names the node and what is wrong with it.
#include "hetnn/ir/verify.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ir/text.h"

namespace hetnn::ir {
namespace {

// Two on one device, and one on another that reads both.
constexpr const char* kPlaced = R"(graph @g {stage = fused} (%x: f32[2]) -> (%c) {
  %a = relu(%x) : f32[2] on npu in 0 launch 0
  %b = sqrt(%a) : f32[2] on npu in 0 launch 0
  %c = add(%a, %b) : f32[2] on cpu in 1 launch 1
}
)";

class Verify : public testing::Test {
 protected:
  Node* node(const char* name) { return graph.find_value(name)->producer(); }
  Graph graph = parse(kPlaced);
};

TEST_F(Verify, AcceptsAGraphOfEveryStage) {
  for (const Stage stage : {Stage::imported, Stage::canonical, Stage::legal, Stage::placed, Stage::cut, Stage::fused}) {
    graph.stage = stage;
    verify(graph);
  }
}

TEST_F(Verify, AValueIsWrittenBeforeItIsRead) {
  Rewriter(graph).move_before(node("b"), node("a"));
  EXPECT_ERROR(verify(graph), InternalError, "sqrt 'b' reads 'a' before it is written");
}

TEST_F(Verify, ACanonicalGraphHasNoDeadNodes) {
  graph.stage = Stage::imported;
  Rewriter(graph).add("relu", {graph.find_value("a")}, {}, "unread");
  verify(graph);
  graph.stage = Stage::canonical;
  EXPECT_ERROR(verify(graph), InternalError, "relu 'unread' is dead");
}

TEST_F(Verify, ACanonicalGraphHasItsConstantsFolded) {
  Graph constant = parse(R"(graph @g {stage = imported} (%x: f32[2]) -> (%y, %kept) {
  %k = constant() {value = f32[2] {1, -1}} : f32[2]
  %r = relu(%k) : f32[2]
  %y = add(%x, %r) : f32[2]
  %kept = relu(%k) : f32[2]
})");
  verify(constant);
  constant.stage = Stage::canonical;
  EXPECT_ERROR(verify(constant), InternalError, "relu 'r' reads constants only and is not folded");
  Rewriter rewriter(constant);
  Node* sum = constant.find_value("y")->producer();
  rewriter.set_input(sum, 1, constant.find_value("k"));
  rewriter.erase_dead();
  verify(constant);  // what the graph returns may be of constants
}

TEST_F(Verify, APlacedNodeHasADevice) {
  node("b")->device.clear();
  EXPECT_ERROR(verify(graph), InternalError, "sqrt 'b' is on no device");
  graph.stage = Stage::legal;
  verify(graph);
}

TEST_F(Verify, ASubgraphIsOneRunOfNodesOnOneDevice) {
  node("b")->subgraph = -1;
  EXPECT_ERROR(verify(graph), InternalError, "sqrt 'b' is in no subgraph");
  node("b")->subgraph = 1;
  EXPECT_ERROR(verify(graph), InternalError, "add 'c' on cpu in a subgraph on npu");
  node("b")->subgraph = 2;
  node("c")->subgraph = 0;
  node("c")->device = "npu";
  EXPECT_ERROR(verify(graph), InternalError, "subgraph 0 is not contiguous at add 'c'");
  graph.stage = Stage::placed;
  verify(graph);
}

TEST_F(Verify, NodesOfOneLaunchAreInOneSubgraph) {
  node("c")->launch = -1;
  EXPECT_ERROR(verify(graph), InternalError, "add 'c' is in no launch");
  node("c")->launch = 0;
  EXPECT_ERROR(verify(graph), InternalError, "launch 0 spans subgraphs");
  graph.stage = Stage::cut;
  verify(graph);
}

TEST_F(Verify, AStateIsAnInputAndAnOutputOfOneType) {
  const auto with = [](const char* mutation) {
    return parse(std::string("graph @g {stage = imported, mutates ") + mutation +
                 "} (%s: f32[2]) -> (%t) {\n  %t = relu(%s) : f32[2]\n}");
  };
  verify(with(R"("s" by "t" from f32[2] {1, 2})"));
  EXPECT_ERROR(verify(with(R"("t" by "t" from f32[2] {1, 2})")), InvalidModel, "the state 't' must be an input");
  EXPECT_ERROR(verify(with(R"("s" by "u" from f32[2] {1, 2})")), InvalidModel, "and 'u' one of its outputs");
  EXPECT_ERROR(verify(with(R"("s" by "t" from f32[3] {1, 2, 3})")), InvalidModel,
               "the state 's' must keep one type of fixed shape; it is f32[2], its next value f32[2], its first "
               "f32[3].");
}

constexpr const char* kDefines =
    R"(graph @g {stage = imported, symbols = [n: 1..64 = 8, u: 0..64 = 8]} (%x: f32[n]) -> (%y) {
  %i = nonzero(%x) {count = u} : i64[u,1]
  %r = arange() {end = u} : i64[u]
  %j = reshape(%i) {shape = [u]} : i64[u]
  %y = add(%j, %r) : i64[u]
}
)";

TEST(VerifySymbols, ANodeDefinesASymbolBeforeOthersNeedIt) {
  Graph defines = parse(kDefines);
  verify(defines);
  EXPECT_EQ(print(parse(print(defines))), print(defines));
  const auto at = [&](const char* name) { return defines.find_value(name)->producer(); };
  EXPECT_EQ(definers(defines).at("u"), at("i"));
  ASSERT_EQ(free_symbols(defines).size(), 1U);
  EXPECT_EQ(free_symbols(defines)[0].name, "n");
  Rewriter(defines).move_before(at("r"), at("i"));
  EXPECT_ERROR(verify(defines), InvalidModel, "arange 'r' needs the symbol 'u' before nonzero 'i' defines it");
}

TEST(VerifySymbols, ASymbolHasOneSource) {
  Graph twice = parse(kDefines);
  Rewriter rewriter(twice);
  rewriter.add("nonzero", {twice.find_value("x")}, {{"count", Dim::symbol("u")}}, "again");
  EXPECT_ERROR(verify(twice), InvalidModel, "nonzero 'again' defines a symbol that nonzero 'i' defines before");
  Graph given = parse(kDefines);
  Rewriter(given).add("nonzero", {given.find_value("x")}, {{"count", Dim::symbol("n")}}, "size");
  EXPECT_ERROR(verify(given), InvalidModel,
               "nonzero 'size' defines the symbol 'n', which the shape of an input gives a value too");
  Graph undeclared = parse(kDefines);
  Rewriter(undeclared).add("nonzero", {undeclared.find_value("x")}, {{"count", Dim::symbol("w")}}, "other");
  EXPECT_ERROR(verify(undeclared), InvalidModel, "defines the symbol 'w', which must be declared once");
}

TEST(VerifySymbols, ADefinitionLivesWhileItsSymbolIsNeeded) {
  Graph graph = parse(R"(graph @g {stage = imported, symbols = [u: 0..9 = 4, v: 0..9 = 4]} (%x: f32[9]) -> (%y) {
  %i = nonzero(%x) {count = u} : i64[u,1]
  %unread = nonzero(%x) {count = v} : i64[v,1]
  %y = arange() {end = u} : i64[u]
}
)");
  EXPECT_EQ(Rewriter(graph).erase_dead(), 1U);
  EXPECT_NE(graph.find_value("i"), nullptr);
  ASSERT_EQ(graph.symbols.size(), 1U);
  EXPECT_EQ(graph.symbols[0].name, "u");
  verify(graph);
}

}  // namespace
}  // namespace hetnn::ir
