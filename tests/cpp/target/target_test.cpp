// What devices answer: every reason at once, in words that show both sides; bytes and work of nodes by hand.
#include "hetnn/target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.h"
#include "hetnn/ir/text.h"
#include "hetnn/target/op_limits.h"

namespace hetnn::target {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Node : public testing::Test {
 protected:
  const ir::Node& node(std::string_view source) {
    graph_ = ir::parse_sample(source);
    return *graph_.outputs()[0]->producer();
  }

  std::vector<std::string> sentences(std::string_view source, const OpLimitsTable& table,
                                     const Bindings& bindings = {}) {
    std::vector<std::string> out;
    for (const auto& reason : check_limits(node(source), "paper", "sheet", table, bindings).reasons)
      out.push_back(text(reason.label, ": ", reason.text, " (", reason.found, ", ", reason.wanted, ")"));
    return out;
  }

 private:
  ir::Graph graph_;
};

class Named final : public Device {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::string_view kind() const override { return "paper"; }
  Support support(const ir::Node&) const override { return {}; }
  double time_us(const ir::Node&, const Bindings&) const override { return 0; }

 private:
  std::string name_;
};

TEST(Target, FindsADeviceByNameAndSaysWhichThereAre) {
  Target target;
  target.name = "cpu+two";
  for (const char* name : {"cpu", "one", "two"}) target.devices.push_back(std::make_shared<Named>(name));
  EXPECT_EQ(target.device_index("two"), 2U);
  EXPECT_ERROR(target.device_index("three"), InvalidModel,
               "target 'cpu+two' has no device 'three'. Its devices are: cpu, one, two.");
}

TEST_F(Node, ThatFitsHasNoReasonAgainstIt) {
  const OpLimitsTable table = {{"conv2d", {{DType::f32}, {{"kernel_h_max", 3}}, 4}}};
  EXPECT_THAT(sentences("conv2d(f32[1,3,8,8], f32[4,3,3,3])", table), IsEmpty());
}

TEST_F(Node, ThatTheSheetDoesNotListIsMissing) {
  EXPECT_THAT(sentences("relu(f32[2])", {}),
              ElementsAre("relu_missing: sheet has no operator relu (relu, an operator of the device)"));
}

TEST_F(Node, HearsOfEveryLimitThatItExceeds) {
  const OpLimitsTable table = {{"conv2d", {{DType::f32}, {{"kernel_h_max", 3}, {"kernel_w_min", 2}}, 0}}};
  EXPECT_THAT(sentences("conv2d(f32[1,3,8,8], f32[4,3,5,1])", table),
              ElementsAre("conv2d_kernel_h_max: sheet needs kernel_h <= 3; it is 5 (5, at most 3)",
                          "conv2d_kernel_w_min: sheet needs kernel_w >= 2; it is 1 (1, at least 2)"));
}

TEST_F(Node, IsRefusedByTypeAndRankOnceForEachOperand) {
  const OpLimitsTable table = {{"relu", {{DType::f16, DType::i8}, {}, 2}}};
  EXPECT_THAT(sentences("relu(f32[1,2,3])", table),
              ElementsAre("relu_dtype: sheet computes relu in f16, i8; 'x0' is f32 (f32, f16, i8)",
                          "relu_rank: sheet takes tensors of rank up to 2; 'x0' has rank 3 (3, at most 2)",
                          "relu_dtype: sheet computes relu in f16, i8; 'relu' is f32 (f32, f16, i8)",
                          "relu_rank: sheet takes tensors of rank up to 2; 'relu' has rank 3 (3, at most 2)"));
}

TEST_F(Node, OfIntegersNeedsAScaleWhereI8MeansReals) {
  const OpLimitsTable table = {{"relu", {{DType::i8}, {}, 0}}};
  EXPECT_THAT(sentences("relu(i8[4])", table),
              ElementsAre("relu_quantized: sheet computes i8 as quantized reals; 'x0' has no scale (i8[4], i8 with a "
                          "scale)",
                          "relu_quantized: sheet computes i8 as quantized reals; 'relu' has no scale (i8[4], i8 with a "
                          "scale)"));
}

TEST_F(Node, SymbolsAreTakenAtTheirValues) {
  const ir::Node& sum = node("add(f32[n,4], f32[n,4])");
  EXPECT_THAT(trial_bindings(sum), ElementsAre(std::pair<const std::string, int64_t>("n", 64)));
  const Bindings ten = {{"n", 10}};
  EXPECT_EQ(value_bytes(*sum.output(), ten), 160);
  EXPECT_EQ(bytes_touched(sum, ten), 480);
}

TEST_F(Node, SymbolsLeaveSomethingOfWhatWindowsCutOff) {
  EXPECT_THAT(
      trial_bindings(node("conv2d(f32[b,1,1,n], f32[4,1,1,300])")),
      ElementsAre(std::pair<const std::string, int64_t>("b", 64), std::pair<const std::string, int64_t>("n", 512)));
}

TEST_F(Node, WorkIsTheOperatorsOwnOrOneFlopAnElement) {
  // 4 filters of 3·3·3 at 6·6 places.
  EXPECT_EQ(work_of(node("conv2d(f32[1,3,8,8], f32[4,3,3,3])"), {}).macs, 4 * 27 * 36);
  const ConcreteWork sum = work_of(node("add(f32[n,4], f32[n,4])"), {{"n", 10}});
  EXPECT_EQ(sum.macs, 0);
  EXPECT_EQ(sum.flops, 40);
  const ConcreteWork view = work_of(node("reshape(f32[2,6]) {shape = [3,4]}"), {});
  EXPECT_EQ(view.macs + view.flops, 0);
}

}  // namespace
}  // namespace hetnn::target
