// Edits keep use lists, types, names and source locations; what does not fit is refused and changes nothing.
#include "hetnn/ir/rewriter.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"

namespace hetnn::ir {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr const char* kNet = R"(graph @g {stage = imported} (%x: f32[4,6]) -> (%c) {
  %a = relu(%x) : f32[4,6] loc("net.first", "net.py":3)
  %b = sqrt(%a) : f32[4,6] loc("net.second", "net.py":4)
  %c = add(%a, %b) : f32[4,6] loc("net.sum", "net.py":5)
}
)";

class Rewrite : public testing::Test {
 protected:
  Value* value(const char* name) { return graph.find_value(name); }
  Node* node(const char* name) { return value(name)->producer(); }

  Graph graph = parse(kNet);
  Rewriter rewriter{graph};
};

TEST_F(Rewrite, ANewNodeIsReadWrittenAndLocated) {
  rewriter.insert_before(node("c"));
  Value* made = rewriter.add("relu", {value("b")}, {}, "b");
  EXPECT_EQ(made->name(), "b_1");
  EXPECT_EQ(made->producer()->loc(), (Loc{"net.sum", "net.py", 5}));
  EXPECT_THAT(value("b")->uses(), UnorderedElementsAre(Use{node("c"), 1}, Use{made->producer(), 0}));
  rewriter.insert_before(nullptr);
  EXPECT_EQ(rewriter.add("relu", {made}, {}, "last", Loc{"own", "own.py", 1})->producer()->loc(),
            (Loc{"own", "own.py", 1}));
  EXPECT_EQ(rewriter.add("relu", {made})->producer()->loc(), Loc{});
  verify(graph);
}

TEST_F(Rewrite, MissingAttributesTakeTheirDefaults) {
  Node* clamp = rewriter.create("leaky_relu", {value("a")});
  EXPECT_EQ(clamp->real("negative_slope"), 0.01);
  verify(graph);
}

TEST_F(Rewrite, WhatDoesNotFitItsOperatorIsNotAdded) {
  EXPECT_ERROR(rewriter.add("relo", {value("a")}), InvalidModel, "relu");
  EXPECT_ERROR(rewriter.add("relu", {}), InvalidModel, "relu 'relu': input 'x' is missing");
  EXPECT_ERROR(rewriter.add("relu", {value("a"), value("b")}), InvalidModel, "takes at most 1 input; got 2");
  EXPECT_ERROR(rewriter.add("relu", {value("a")}, {{"slope", 1.0}}), InvalidModel, "has no attribute 'slope'");
  EXPECT_ERROR(rewriter.add("leaky_relu", {value("a")}, {{"negative_slope", std::string("much")}}), InvalidModel,
               "attribute 'negative_slope' is of kind real; got string");
  EXPECT_ERROR(rewriter.add("reshape", {value("a")}), InvalidModel, "attribute 'shape' is missing");
  EXPECT_EQ(print(graph), kNet);
  verify(graph);
}

TEST_F(Rewrite, ReplacedValuesHandOverTheirReadersAndOutputs) {
  rewriter.insert_before(node("c"));
  Value* other = rewriter.add("abs", {value("x")}, {}, "other");
  rewriter.replace_uses(value("a"), other);
  EXPECT_TRUE(value("a")->uses().empty());
  EXPECT_EQ(node("c")->input(0), other);
  rewriter.move_before(other->producer(), node("b"));
  verify(graph);
  rewriter.replace_uses(value("c"), other);
  EXPECT_EQ(graph.outputs()[0], other);
  EXPECT_EQ(graph.output_names[0], "c");
  EXPECT_EQ(rewriter.erase_dead(), 3U);
  EXPECT_EQ(graph.node_count(), 1U);
  verify(graph);
}

TEST_F(Rewrite, AValueIsReplacedByOneOfItsType) {
  Value* narrow = rewriter.add_input("narrow", {DType::f32, {4, 3}, {}});
  EXPECT_ERROR(rewriter.replace_uses(value("a"), narrow), InternalError, "'a' is f32[4,6], 'narrow' is f32[4,3]");
}

TEST_F(Rewrite, ANewInputOrAttributeInfersTheTypeAgain) {
  Value* turned = rewriter.add("reshape", {value("c")}, {{"shape", std::vector<Dim>{24}}}, "turned");
  rewriter.set_attr(turned->producer(), "shape", std::vector<Dim>{8, 3});
  EXPECT_EQ(to_string(turned->type()), "f32[8,3]");
  Value* longer = rewriter.add("relu", {value("c")}, {}, "longer");
  rewriter.set_input(longer->producer(), 0, turned);
  EXPECT_EQ(to_string(longer->type()), "f32[8,3]");
  EXPECT_TRUE(value("c")->uses().size() == 1 && value("c")->uses()[0].node == turned->producer());
  verify(graph);
}

TEST_F(Rewrite, ANodeThatIsReadStays) {
  EXPECT_ERROR(rewriter.erase(node("b")), InternalError, "sqrt 'net.second' is still read");
  EXPECT_ERROR(rewriter.erase(node("c")), InternalError, "add 'net.sum' is still read");
  verify(graph);
}

TEST_F(Rewrite, ANameThatIsTakenIsHandedOver) {
  rewriter.rename(value("b"), "a");
  EXPECT_EQ(print(graph), R"(graph @g {stage = imported} (%x: f32[4,6]) -> (%c) {
  %a_1 = relu(%x) : f32[4,6] loc("net.first", "net.py":3)
  %a = sqrt(%a_1) : f32[4,6] loc("net.second", "net.py":4)
  %c = add(%a_1, %a) : f32[4,6] loc("net.sum", "net.py":5)
}
)");
  verify(graph);
}

TEST_F(Rewrite, CreatedNodesAreToldOnceAndWithoutTheErased) {
  Node* first = rewriter.create("relu", {value("c")});
  Node* second = rewriter.create("abs", {value("c")});
  rewriter.erase(first);
  EXPECT_THAT(rewriter.take_created(), ElementsAre(second));
  EXPECT_TRUE(rewriter.take_created().empty());
}

TEST_F(Rewrite, ACopyIsAGraphOfItsOwn) {
  const Graph copy = graph.clone();
  rewriter.set_output(0, value("a"));
  rewriter.erase_dead();
  EXPECT_EQ(print(copy), kNet);
  EXPECT_EQ(graph.node_count(), 1U);
  verify(copy);
  verify(graph);
}

}  // namespace
}  // namespace hetnn::ir
