// What the general processor makes of a subgraph: variants where they serve, meanings elsewhere, steps in one launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "hetnn/backends/backend.h"
#include "hetnn/backends/cpu/emit.h"
#include "hetnn/backends/cpu/launches.h"
#include "hetnn/ir/text.h"
#include "hetnn/passes/fuse.h"

namespace hetnn::backends::cpu {
namespace {

ir::Graph subgraph(const std::string& source) {
  ir::Graph graph = ir::parse(source);
  for (ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    node->device = "cpu";
    node->subgraph = 0;
  }
  graph.stage = ir::Stage::cut;
  return graph;
}

std::vector<program::Command> commands_of(const std::string& source, const EmitOptions& options, Assembler& assembler) {
  ir::Graph graph = subgraph(source);
  const Bindings hints = graph.hints();
  passes::fuse(graph, {.enabled = options.variants, .can_follow = [&](auto launch, const ir::Node& follower) {
                         return can_follow(launch, follower, hints);
                       }});
  for (const ir::Value* input : graph.inputs())
    assembler.set_boundary(input->name(), assembler.port_buffer(input->name(), input->type(), program::Place::input));
  for (const ir::Value* output : graph.outputs())
    assembler.set_boundary(output->name(),
                           assembler.port_buffer(output->name(), output->type(), program::Place::output));
  return emit(graph, assembler, options).commands;
}

std::vector<program::Command> commands_of(const std::string& source, const EmitOptions& options = {}) {
  Assembler assembler;
  return commands_of(source, options, assembler);
}

std::string add_of(const std::string& type) {
  return "graph @g {stage = imported} (%a: " + type + ", %b: " + type + ") -> (%y) {\n  %y = add(%a, %b) : " + type +
         "\n}";
}

TEST(Commands, TakeAVariantWhereOneServesAndTheMeaningElsewhere) {
  EXPECT_EQ(commands_of(add_of("f32[4,8]")).at(0).variant, "binary");
  for (const char* type : {"i64[4,8]", "i32[4,8]", "i8[4]", "i64[]"})
    EXPECT_EQ(commands_of(add_of(type)).at(0).variant, "") << type;
  EXPECT_EQ(commands_of(add_of("f32[4,8]"), {.variants = false}).at(0).variant, "");
}

TEST(Commands, AWeightComputedAtRunTimeIsPackedThereOrLeftToTheMeaning) {
  const std::string packed = R"(graph @g {stage = imported} (%x: f32[2,3], %w: f32[4,3]) -> (%y) {
  %y = linear(%x, %w) : f32[2,4]
})";
  EXPECT_EQ(commands_of(packed).at(0).variant, "linear");
  const std::string given = R"(graph @g {stage = imported} (%x: f32[4,6], %w: f32[2,6,3], %e: i64[2]) -> (%y) {
  %y = grouped_matmul(%x, %w, %e) : f32[4,3]
})";
  const std::vector<program::Command> commands = commands_of(given);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].variant, "");
  EXPECT_EQ(commands[0].inputs, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Commands, AnAbsentInputHasNoBuffer) {
  const std::string unbiased = R"(graph @g {stage = imported} (%x: f32[1,2,5,5], %m: f32[1,2,1,1]) -> (%y) {
  %w = constant() {value = f32[1,2,1,1] {1, 2}} : f32[1,2,1,1]
  %y = scaled_conv2d(%x, %w, %m, _) : f32[1,1,5,5]
})";
  const std::vector<program::Command> commands = commands_of(unbiased);
  const auto gated =
      std::find_if(commands.begin(), commands.end(), [](const auto& c) { return c.variant == "scaled_conv2d"; });
  ASSERT_NE(gated, commands.end());
  EXPECT_EQ(gated->inputs.size(), 3U);
}

TEST(Commands, WhatFollowsBecomesStepsOfOneLaunch) {
  const std::string chain = R"(graph @g {stage = imported} (%x: f32[4,8], %z: f32[4,8]) -> (%y) {
  %s = mul(%x, %z) : f32[4,8]
  %t = add(%s, %x) : f32[4,8]
  %y = clamp(%t) {min = 0, max = 6} : f32[4,8]
})";
  const std::vector<program::Command> commands = commands_of(chain);
  ASSERT_EQ(commands.size(), 1U);
  ASSERT_EQ(commands[0].steps.size(), 2U);
  EXPECT_EQ(commands[0].steps[0].op->name, "add");
  EXPECT_EQ(commands[0].steps[0].operand, 2);
  EXPECT_EQ(std::get<double>(commands[0].steps[1].attrs.at("max")), 6);
  EXPECT_EQ(commands[0].inputs, (std::vector<int32_t>{0, 1, 0}));
}

// Of the buffers with their channels last, by name.
std::map<std::string, int64_t> pitches_of(const std::string& source) {
  Assembler assembler;
  commands_of(source, {}, assembler);
  std::map<std::string, int64_t> out;
  for (const program::Buffer& buffer : assembler.program().buffers)
    if (buffer.layout == Layout::nhwc) out[buffer.name] = buffer.pitch.value();
  return out;
}

std::string zeros(const std::string& shape, int count) {
  std::string out = "constant() {value = " + shape + " {0";
  for (int k = 1; k < count; ++k) out += ", 0";
  return out + "}} : " + shape + "\n";
}

// Both parts of a whole, the half that is cut out of it, and a value that stands by itself.
TEST(Placement, PartsHaveThePixelsOfTheirWhole) {
  const std::string source =
      "graph @g {stage = imported} (%x: f32[1,20,9,9]) -> (%y) {\n  %v = " + zeros("f32[20,1,3,3]", 180) +
      "  %w = " + zeros("f32[40,1,3,3]", 360) +
      R"(  %a = conv2d(%x, %v, _) {padding = [1, 1], groups = 20} : f32[1,20,9,9]
  %b = conv2d(%a, %v, _) {padding = [1, 1], groups = 20} : f32[1,20,9,9]
  %c = concat(%a, %b) {axis = 1} : f32[1,40,9,9]
  %d = conv2d(%c, %w, _) {padding = [1, 1], groups = 40} : f32[1,40,9,9]
  %e = slice(%d) {axis = 1, start = 16, end = 36} : f32[1,20,9,9]
  %f = conv2d(%e, %v, _) {padding = [1, 1], groups = 20} : f32[1,20,9,9]
  %y = identity(%f) : f32[1,20,9,9]
})";
  EXPECT_THAT(pitches_of(source),
              testing::IsSupersetOf({testing::Pair("a", 48), testing::Pair("b", 48), testing::Pair("c", 48),
                                     testing::Pair("d", 48), testing::Pair("e", 48), testing::Pair("f", 32)}));
}

TEST(Backends, AKindThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_THAT(
      [] {
        make_backend({"x", "tpu", ""});
      },
      testing::ThrowsMessage<InvalidModel>(
          testing::AllOf(testing::HasSubstr("device 'x' is of kind 'tpu'"), testing::HasSubstr("cpu"))));
}

}  // namespace
}  // namespace hetnn::backends::cpu
