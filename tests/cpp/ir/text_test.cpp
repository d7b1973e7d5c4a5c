// Graphs print and parse back identically; what cannot be read is named with line and column.
#include "hetnn/ir/text.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/verify.h"

namespace hetnn::ir {
namespace {

constexpr const char* kNet =
    R"(graph @net {stage = placed, symbols = [h: 3..64 = 16], mutates "s" by "next" from f32[1,2,1,1] {1, 2}} (%x: f32[1,3,h,8], %s: f32[1,2,1,1]) -> (%y as "out", %c.1, %t as "next") {
  %w = constant() {value = f32[2,3,3,3] "AAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EAAAABBAAAQQQAAIEEAADBBAABAQQAAUEEAAGBBAABwQQAAgEEAAIhBAACQQQAAmEEAAKBBAACoQQAAsEEAALhBAADAQQAAyEEAANBBAADYQQAA4EEAAOhBAADwQQAA+EEAAABCAAAEQgAACEIAAAxCAAAQQgAAFEIAABhCAAAcQgAAIEIAACRCAAAoQgAALEIAADBCAAA0QgAAOEIAADxCAABAQgAAREIAAEhCAABMQgAAUEIAAFRC"} : f32[2,3,3,3]
  %b = constant() {value = f32[2] {0.1, -inf}} : f32[2]
  %c.1 = conv2d(%x, %w, %b) {stride = [2,1]} : f32[1,2,floordiv(h - 3, 2) + 1,6] on npu in 0 launch 3 loc("net.conv", "net.py":12)
  %y = add(%c.1, %s) : f32[1,2,floordiv(h - 3, 2) + 1,6] on cpu loc("net")
  %t = relu(%s) : f32[1,2,1,1] on cpu
}
)";

TEST(Text, RoundTripsByteForByte) { EXPECT_EQ(print(parse(kNet)), print(parse(print(parse(kNet))))); }

TEST(Text, PrintsWhatItReads) {
  for (const char* source : {
           "graph @empty {stage = imported} () -> () {\n}\n",
           "graph @\"a name, quoted\" {stage = planned} (%x: i64[]) -> (%x as \"out \\\"1\\\"\", %x as \"2\") {\n}\n",
           "graph @s {stage = legal, symbols = [h: 1..9 = 2, w: 3..3 = 3]} (%x: f32[h,2*w - 1]) -> (%y) {\n"
           "  %y = relu(%x) : f32[h,2*w - 1] on npu in 7 launch 12 loc(\"a.b\")\n}\n",
           "graph @q {stage = imported} (%x: f32[2]) -> (%y) {\n"
           "  %y = relu(%x) : f32[2] loc(\"a \\\"b\\\"\\\\c\\nd\", \"my net.py\":12)\n}\n",
           "graph @i {stage = imported} (%x: i8{0.03125:-9}[2,3]) -> (%y) {\n"
           "  %y = leaky_relu(%x) {negative_slope = 0.25, q_scale = [0.0625], q_zero = 5} : i8{0.0625:5}[2,3]\n}\n",
           "graph @k {stage = imported} () -> (%k, %n, %b) {\n"
           "  %k = constant() {value = f32[6] {0.1, -0, inf, -inf, nan, 1e-45}} : f32[6]\n"
           "  %n = constant() {value = i8[3] {-128, 0, 127}} : i8[3]\n"
           "  %b = constant() {value = bool[2] {0, 1}} : bool[2]\n}\n",
       }) {
    EXPECT_EQ(print(parse(source)), source);
  }
}

TEST(Text, KeepsEveryBitOfConstants) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::u8, DType::i16, DType::i32}) {
    for (const int64_t elems : {0, 1, 16, 17}) {
      std::byte* bytes = nullptr;
      const Tensor value = Tensor::zeros(dtype, {elems}, &bytes);
      for (int64_t k = 0; k < value.bytes(); ++k) bytes[k] = static_cast<std::byte>(1 + 37 * k % 101);
      Graph graph("constants");
      Rewriter rewriter(graph);
      rewriter.add_output(rewriter.constant(value));
      const Graph back = parse(print(graph));
      EXPECT_EQ(back.outputs()[0]->producer()->tensor("value"), value) << dtype_name(dtype) << " of " << elems;
    }
  }
}

TEST(Text, KeepsEveryPart) {
  const Graph graph = parse(kNet);
  EXPECT_EQ(print(graph.clone()), print(graph));
  const Node* conv = graph.find_value("c.1")->producer();
  EXPECT_EQ(conv->loc(), (Loc{"net.conv", "net.py", 12}));
  EXPECT_EQ(conv->device, "npu");
  EXPECT_EQ(conv->launch, 3);
  EXPECT_EQ(conv->constant_input(1)->values<float>()[2], 2.0F);
  EXPECT_EQ(graph.output_names[0], "out");
  EXPECT_EQ(graph.symbols[0], (Symbol{"h", 3, 64, 16}));
  EXPECT_EQ(graph.mutations[0], (Mutation{"s", "next", Tensor::of<float>({1, 2, 1, 1}, {1, 2})}));
}

TEST(Text, NamesAreOfAnyCharacters) {
  const std::string source =
      "graph @main {stage = imported, symbols = [\u6570: 0..64 = 8]} (%\"\u5165\u529b\": f32[\u6570,2*\u6570], "
      "%\"input:0\": f32[\u6570,1]) -> (%\"a \\\"b\\\"\\n\\\\\" as \"out/0\") {\n"
      "  %\"a \\\"b\\\"\\n\\\\\" = add(%\"\u5165\u529b\", %\"input:0\") : f32[\u6570,2*\u6570]\n}\n";
  const Graph graph = parse(source);
  EXPECT_EQ(print(graph), source);
  EXPECT_EQ(graph.inputs()[0]->name(), "\u5165\u529b");
  EXPECT_EQ(graph.outputs()[0]->name(), "a \"b\"\n\\");
  EXPECT_EQ(graph.symbols[0].name, "\u6570");
}

TEST(Text, NamesLineAndColumnOfWhatItCannotRead) {
  auto refuses = [](const char* source, const char* words) {
    EXPECT_ERROR(parse(source), InvalidModel, words) << source;
  };
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relo(%x) : f32[2]\n}", "line 2");
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relo(%x) : f32[2]\n}", "Did you mean 'relu'");
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relu(%z) : f32[2]\n}", "'%z' is not written");
  refuses("graph @g {stage = imported} (%x: f32[2]) -> (%x) {\n  %y = relu(%x) : f32[3]\n}", "but infers f32[2]");
  refuses("graph @g {stage = soon} () -> () {}", "no stage 'soon'");
  refuses("graph @g {stage = imported} (%x: f99[2]) -> () {}", "no element type 'f99'");
  refuses("graph @g {stage = imported, symbols = [2*h: 0..2 = 1]} () -> () {}", "expected a symbol");
  refuses("graph @g {stage = imported} (%\"x: f32[2]) -> () {}", "a quoted text has no end");
  refuses(
      "graph @g {stage = imported} (%x\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9) "
      "-> () {}",
      "got '\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9'");
  refuses("", "expected 'graph'");
}

TEST(Text, NodesThatDoNotFitTheirOperatorAreRefused) {
  EXPECT_ERROR(parse_sample("conv2d(f32[1,4,224,224], f32[64,3,7,7])"), InvalidModel,
               "weight must have in_channels/groups on axis 1", "[64,3,7,7]", "(conv2d_c3)");
  EXPECT_ERROR(parse_sample("add(f32[2], f32[3])"), InvalidModel, "must broadcast; got [2] and [3]");
  EXPECT_ERROR(parse_sample("conv2d(f32[1,4,8,8], f32[4,1,8,8]) {groups = 4, q_divisor = 64}"), InvalidModel,
               "q_divisor is a whole number up to 8388608 and goes with q_rounding; got 64", "(conv2d_c7)");
}

TEST(Text, RewriterKeepsUseListsAndNames) {
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
