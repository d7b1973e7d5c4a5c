// Graphs print and parse back identically; what cannot be read is named with line and column.
#include "hetnn/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/verify.h"

namespace hetnn::ir {
namespace {

class Text : public testing::Test {
 protected:
};

constexpr const char* kNet =
    R"(graph @net {stage = placed, symbols = [h: 3..64 = 16], mutates "s" by "next" from f32[1,2,1,1] {1, 2}} (%x: f32[1,3,h,8], %s: f32[1,2,1,1]) -> (%y as "out", %c.1, %t as "next") {
  %w = constant() {value = f32[2,3,3,3] "AAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EAAAABBAAAQQQAAIEEAADBBAABAQQAAUEEAAGBBAABwQQAAgEEAAIhBAACQQQAAmEEAAKBBAACoQQAAsEEAALhBAADAQQAAyEEAANBBAADYQQAA4EEAAOhBAADwQQAA+EEAAABCAAAEQgAACEIAAAxCAAAQQgAAFEIAABhCAAAcQgAAIEIAACRCAAAoQgAALEIAADBCAAA0QgAAOEIAADxCAABAQgAAREIAAEhCAABMQgAAUEIAAFRC"} : f32[2,3,3,3]
  %b = constant() {value = f32[2] {0.1, -inf}} : f32[2]
  %c.1 = conv2d(%x, %w, %b) {stride = [2,1]} : f32[1,2,floordiv(h - 3, 2) + 1,6] on npu in 0 group 3 loc("net.conv", "net.py":12)
  %y = add(%c.1, %s) : f32[1,2,floordiv(h - 3, 2) + 1,6] on cpu loc("net")
  %t = relu(%s) : f32[1,2,1,1] on cpu
}
)";

TEST_F(Text, RoundTripsByteForByte) { EXPECT_EQ(print(parse(kNet)), print(parse(print(parse(kNet))))); }

TEST_F(Text, KeepsEveryPart) {
  const Graph graph = parse(kNet);
  EXPECT_EQ(print(graph.clone()), print(graph));
  const Node* conv = graph.find_value("c.1")->producer();
  EXPECT_EQ(conv->loc(), (Loc{"net.conv", "net.py", 12}));
  EXPECT_EQ(conv->device, "npu");
  EXPECT_EQ(conv->group, 3);
  EXPECT_EQ(conv->constant_input(1)->values<float>()[2], 2.0F);
  EXPECT_EQ(graph.output_names[0], "out");
  EXPECT_EQ(graph.symbols[0], (Symbol{"h", 3, 64, 16}));
  EXPECT_EQ(graph.mutations[0], (Mutation{"s", "next", Tensor::of<float>({1, 2, 1, 1}, {1, 2})}));
}

TEST_F(Text, NamesLineAndColumnOfWhatItCannotRead) {
  auto refuses = [](const char* source, const char* words) {
    EXPECT_THAT([&] { parse(source); }, testing::ThrowsMessage<InvalidModel>(testing::HasSubstr(words))) << source;
  };
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relo(%x) : f32[2]\n}", "line 2");
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relo(%x) : f32[2]\n}", "Did you mean 'relu'");
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relu(%z) : f32[2]\n}", "'%z' is not written");
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relu(%x) : f32[3]\n}", "but infers f32[2]");
  refuses("graph @g {stage = soon} () -> () {}", "no stage 'soon'");
  refuses("graph @g {stage = imported} (%x: f99[2]) -> () {}", "no element type 'f99'");
  refuses("", "expected 'graph'");
}

TEST_F(Text, NodesThatDoNotFitTheirOperatorAreRefused) {
  EXPECT_THAT([] { parse_sample("conv2d(f32[1,4,224,224], f32[64,3,7,7])"); },
              testing::ThrowsMessage<InvalidModel>(
                  testing::AllOf(testing::HasSubstr("weight must have in_channels/groups on axis 1"),
                                 testing::HasSubstr("[64,3,7,7]"), testing::HasSubstr("(conv2d_c3)"))));
  EXPECT_THAT([] { parse_sample("add(f32[2], f32[3])"); },
              testing::ThrowsMessage<InvalidModel>(testing::HasSubstr("must broadcast; got [2] and [3]")));
}

TEST_F(Text, RewriterKeepsUseListsAndNames) {
  Graph graph = parse(kNet);
  graph.stage = Stage::imported;
  Rewriter rewriter(graph);
  Node* add = graph.find_value("y")->producer();
  rewriter.insert_before(add);
  Value* relu = rewriter.add("relu", {add->input(0)});
  EXPECT_EQ(relu->producer()->loc().scope, "net");
  rewriter.set_input(add, 0, relu);
  verify(graph);
  Value* swap = rewriter.add("add", {add->input(1), relu});
  rewriter.replace_uses(add->output(), swap);
  rewriter.rename(swap, "y");
  EXPECT_EQ(rewriter.erase_dead(), 1U);
  verify(graph);
  EXPECT_EQ(graph.outputs()[0]->name(), "y");
}

}  // namespace
}  // namespace hetnn::ir
