// PReLU in all its forms: slopes below 0, 0, between 0 and 1, 1, above 1, mixed, one for all; ranks 1 to 5.
#include "rule_cases.h"

namespace hetnn::passes {
namespace {

constexpr std::string_view kMixed = R"(graph @g {stage = canonical} (%x: f32[2,8,3,2]) -> (%y) {
  %a = constant() {value = f32[8] {-2, -0.5, 0, 0.25, 1, 1.5, 3, 1e-6}} : f32[8]
  %y = prelu(%x, %a) : f32[2,8,3,2]
})";
constexpr std::string_view kBelowOne = R"(graph @g {stage = canonical} (%x: f32[2,3,5]) -> (%y) {
  %a = constant() {value = f32[3] {0.1, 0.5, 1}} : f32[3]
  %y = prelu(%x, %a) : f32[2,3,5]
})";
constexpr std::string_view kBelow = R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %a = constant() {value = f32[3] {0.1, 0.5, 0.999}} : f32[3]
  %y = prelu(%x, %a) : f32[2,3,4,3]
})";
constexpr std::string_view kAboveOne = R"(graph @g {stage = canonical} (%x: f32[2,3,2,2,2]) -> (%y) {
  %a = constant() {value = f32[3] {1.5, 2, 4}} : f32[3]
  %y = prelu(%x, %a) : f32[2,3,2,2,2]
})";
constexpr std::string_view kAllOnes = R"(graph @g {stage = canonical} (%x: f32[2,2]) -> (%y) {
  %a = constant() {value = f32[2] {1, 1}} : f32[2]
  %y = prelu(%x, %a) : f32[2,2]
})";
constexpr std::string_view kAllZero = R"(graph @g {stage = canonical} (%x: f32[2,3,2,2]) -> (%y) {
  %a = constant() {value = f32[3] {0, 0, 0}} : f32[3]
  %y = prelu(%x, %a) : f32[2,3,2,2]
})";
constexpr std::string_view kOneSlope = R"(graph @g {stage = canonical} (%x: f32[3,4]) -> (%y) {
  %a = constant() {value = f32[1] {0.25}} : f32[1]
  %y = prelu(%x, %a) : f32[3,4]
})";
constexpr std::string_view kVector = R"(graph @g {stage = canonical} (%x: f32[7]) -> (%y) {
  %a = constant() {value = f32[1] {-1.25}} : f32[1]
  %y = prelu(%x, %a) : f32[7]
})";
constexpr std::string_view kSymbolic =
    R"(graph @g {stage = canonical, symbols = [n: 1..9 = 2, h: 2..30 = 3]} (%x: f32[n,2,h,h + 1]) -> (%y) {
  %a = constant() {value = f32[2] {0.25, 1.25}} : f32[2]
  %y = prelu(%x, %a) : f32[n,2,h,h + 1]
})";

constexpr std::string_view kUnknownChannels =
    R"(graph @g {stage = canonical, symbols = [c: 1..9 = 2]} (%x: f32[2,c]) -> (%y) {
  %a = constant() {value = f32[1] {0.25}} : f32[1]
  %y = prelu(%x, %a) : f32[2,c]
})";
constexpr std::string_view kInfinite = R"(graph @g {stage = canonical} (%x: f32[2,2]) -> (%y) {
  %a = constant() {value = f32[2] {1, inf}} : f32[2]
  %y = prelu(%x, %a) : f32[2,2]
})";
constexpr std::string_view kNan = R"(graph @g {stage = canonical} (%x: f32[2,2]) -> (%y) {
  %a = constant() {value = f32[2] {1, nan}} : f32[2]
  %y = prelu(%x, %a) : f32[2,2]
})";

}  // namespace

const Cases& prelu_cases() {
  constexpr std::string_view kFixed = "x is real and its number of channels is fixed, 2^20 at most";
  constexpr std::string_view kFinite = "the slopes are finite";
  constexpr double kUlp = 2e-7;
  static const Cases cases = {
      {
          {"prelu_four_convolutions", kMixed, "conv2d relu conv2d relu conv2d conv2d add conv2d add", kUlp,
           Values::edge},
          {"prelu_four_convolutions", kOneSlope,
           "reshape conv2d reshape relu reshape conv2d reshape relu reshape conv2d reshape reshape conv2d reshape add "
           "reshape conv2d reshape add",
           kUlp, Values::edge},
          {"prelu_dense_branches", kMixed, "conv2d relu add conv2d relu sub", kUlp, Values::edge},
          {"prelu_dense_branches", kBelowOne, "reshape conv2d reshape relu add", kUlp, Values::edge},
          {"prelu_depthwise_branches", kMixed, "conv2d relu add conv2d relu sub", kUlp, Values::edge},
          {"prelu_depthwise_branches", kBelowOne, "reshape conv2d reshape relu add", kUlp, Values::edge},
          {"prelu_depthwise_branches", kAboveOne, "reshape conv2d reshape relu sub", kUlp, Values::edge},
          {"prelu_depthwise_branches", kAllOnes, "", 0, Values::edge},
          {"prelu_depthwise_branches", kAllZero, "conv2d relu add", kUlp, Values::edge},
          {"prelu_depthwise_branches", kOneSlope, "reshape conv2d reshape relu add", kUlp, Values::edge},
          {"prelu_depthwise_branches", kVector, "reshape conv2d reshape relu add", kUlp, Values::edge},
          {"prelu_depthwise_branches", kSymbolic, "conv2d relu add conv2d relu sub", kUlp, Values::edge},
          {"prelu_one_branch", kMixed, "conv2d relu conv2d add", kUlp, Values::edge},
          {"prelu_one_branch", kAboveOne, "reshape conv2d reshape relu reshape conv2d reshape add", kUlp, Values::edge},
          {"prelu_two_sides", kMixed, "conv2d relu relu conv2d add", 0, Values::special},
          {"prelu_two_sides", kBelowOne, "reshape conv2d reshape relu relu reshape conv2d reshape add", 0,
           Values::special},
          {"prelu_two_sides", kAboveOne, "reshape conv2d reshape relu relu reshape conv2d reshape add", 0,
           Values::special},
          {"prelu_two_sides", kVector, "reshape conv2d reshape relu relu reshape conv2d reshape add", 0,
           Values::special},
          {"prelu_two_sides", kAllZero, "conv2d relu relu conv2d add", 0, Values::special},
          {"prelu_maximum", kBelowOne, "mul maximum", 0, Values::special},
          {"prelu_maximum", kOneSlope, "mul maximum", 0, Values::special},
          {"prelu_two_relus", kOneSlope, "reshape conv2d reshape relu relu sub", 0, Values::special},
          {"prelu_two_relus", kAboveOne, "reshape conv2d reshape relu relu sub", 0, Values::special},
          {"prelu_two_relus", kVector, "reshape conv2d reshape relu relu add", 0, Values::special},
          {"prelu_scaled_and_rest", kOneSlope, "reshape conv2d reshape relu reshape conv2d reshape add", kUlp,
           Values::special},
          {"prelu_scaled_and_rest", kBelow, "conv2d relu conv2d add", kUlp, Values::special},
          {"leaky_relu_as_prelu", R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %y = leaky_relu(%x) {negative_slope = 0.3} : f32[2,3,2]
})",
           "prelu", 1e-7, Values::special},
      },
      {
          {"prelu_four_convolutions", kFixed, kUnknownChannels},
          {"prelu_four_convolutions", kFinite, kInfinite},
          {"prelu_dense_branches", kFixed, kUnknownChannels},
          {"prelu_dense_branches", kFinite, kNan},
          {"prelu_depthwise_branches", kFixed, kUnknownChannels},
          {"prelu_depthwise_branches", kFinite, kInfinite},
          {"prelu_one_branch", kFixed, kUnknownChannels},
          {"prelu_one_branch", kFinite, kNan},
          {"prelu_two_sides", kFixed, kUnknownChannels},
          {"prelu_two_sides", kFinite, kInfinite},
          {"prelu_maximum", kFixed, kUnknownChannels},
          {"prelu_two_relus", kFixed, kUnknownChannels},
          {"prelu_two_relus", kFinite, kInfinite},
          {"prelu_two_relus", "all slopes are above 0, or all below", kMixed},
          {"prelu_two_relus", "all slopes are above 0, or all below", kAllZero},
          {"prelu_scaled_and_rest", kFixed, kUnknownChannels},
          {"prelu_scaled_and_rest", "0 < a < 1 for all slopes", kBelowOne},
          {"prelu_maximum", "0 < a <= 1 for all slopes", kMixed},
          {"prelu_maximum", "0 < a <= 1 for all slopes", kAllZero},
          {"prelu_maximum", "0 < a <= 1 for all slopes", kNan},
          {"leaky_relu_as_prelu", kFixed, R"(graph @g {stage = canonical} (%x: f32[]) -> (%y) {
  %y = leaky_relu(%x) {negative_slope = 0.3} : f32[]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
