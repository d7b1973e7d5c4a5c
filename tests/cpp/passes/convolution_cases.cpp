// Convolutions of one kind by those of another.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& convolution_cases() {
  static const Cases cases = {
      {
          {"linear_as_convolution", R"(graph @g {stage = canonical} (%x: f32[2,4,3]) -> (%y) {
  %w = constant() {value = f32[2,3] {-2.5, 1.0, -1.0, 2.5, 0.5, -1.5}} : f32[2,3]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = linear(%x, %w, %b) : f32[2,4,2]
})",
           "reshape conv2d reshape", 1e-6},
          {"convolution_as_linear", R"(graph @g {stage = canonical} (%x: f32[2,1,2,3]) -> (%y) {
  %w = constant() {value = f32[2,1,2,3] {-2.5, 1.0, -1.0, 2.5, 0.5, -1.5, 2.0, 0.0, -2.0, 1.5, -0.5, -2.5}} : f32[2,1,2,3]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = conv2d(%x, %w, %b) : f32[2,2,1,1]
})",
           "reshape linear reshape", 1e-6},
          {"grouped_as_plain", R"(graph @g {stage = canonical} (%x: f32[1,4,2,2]) -> (%y) {
  %w = constant() {value = f32[4,2,1,1] {-2.5, 1.0, -1.0, 2.5, 0.5, -1.5, 2.0, 0.0}} : f32[4,2,1,1]
  %y = conv2d(%x, %w) {groups = 2} : f32[1,4,2,2]
})",
           "conv2d", 1e-6, Values::edge},
          {"dilated_as_larger_kernel", R"(graph @g {stage = canonical} (%x: f32[1,1,6,6]) -> (%y) {
  %w = constant() {value = f32[2,1,2,2] {-2.5, 1.0, -1.0, 2.5, 0.5, -1.5, 2.0, 0.0}} : f32[2,1,2,2]
  %y = conv2d(%x, %w) {dilation = [1,2]} : f32[1,2,5,4]
})",
           "conv2d", 1e-6, Values::edge},
          {"dilated_as_larger_kernel", R"(graph @g {stage = canonical} (%x: f32[1,2,6,6]) -> (%y) {
  %w = constant() {value = f32[2,1,2,2] {-2.5, 1.0, -1.0, 2.5, 0.5, -1.5, 2.0, 0.0}} : f32[2,1,2,2]
  %y = conv2d(%x, %w) {dilation = [3,3], groups = 2, padding = [1,1]} : f32[1,2,5,5]
})",
           "conv2d", 1e-6, Values::edge},
          {"strided_as_subsampled", R"(graph @g {stage = canonical} (%x: f32[1,1,7,6]) -> (%y) {
  %w = constant() {value = f32[2,1,2,1] {-2.5, 1.0, -1.0, 2.5}} : f32[2,1,2,1]
  %y = conv2d(%x, %w) {stride = [2,3], padding = [1,0]} : f32[1,2,4,2]
})",
           "conv2d max_pool2d", 1e-6},
          {"uneven_padding_as_pad", R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {-2.5, 1.0, -1.0, 2.5}} : f32[1,1,2,2]
  %y = conv2d(%x, %w) {padding = [1,1,0,1]} : f32[1,1,3,4]
})",
           "pad conv2d", 1e-6},
      },
      {
          {"linear_as_convolution", "input and weight are of one element type, or integers of two",
           R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %w = constant() {value = bf16[2,3] "AAAAAAAAAAAAAAAA"} : bf16[2,3]
  %y = linear(%x, %w) : f32[2,2]
})"},
          {"convolution_as_linear", "the kernel covers the image: no padding, groups or dilation",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {-2.5, 1.0, -1.0, 2.5}} : f32[1,1,2,2]
  %y = conv2d(%x, %w) : f32[1,1,2,2]
})"},
          {"grouped_as_plain", "the weights are real",
           R"(graph @g {stage = canonical} (%x: i32[1,2,1,1]) -> (%y) {
  %w = constant() {value = i32[2,1,1,1] {1, 1}} : i32[2,1,1,1]
  %y = conv2d(%x, %w) {groups = 2} : i32[1,2,1,1]
})"},
          {"grouped_as_plain", "there is more than one group",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {-2.5, 1.0, -1.0, 2.5}} : f32[1,1,2,2]
  %y = conv2d(%x, %w) : f32[1,1,2,2]
})"},
          {"dilated_as_larger_kernel", "the weights are real",
           R"(graph @g {stage = canonical} (%x: i32[1,2,1,1]) -> (%y) {
  %w = constant() {value = i32[2,1,1,1] {1, 1}} : i32[2,1,1,1]
  %y = conv2d(%x, %w) {groups = 2} : i32[1,2,1,1]
})"},
          {"dilated_as_larger_kernel", "the dilation is more than 1",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {-2.5, 1.0, -1.0, 2.5}} : f32[1,1,2,2]
  %y = conv2d(%x, %w) : f32[1,1,2,2]
})"},
          {"strided_as_subsampled", "the stride is more than 1",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {-2.5, 1.0, -1.0, 2.5}} : f32[1,1,2,2]
  %y = conv2d(%x, %w) : f32[1,1,2,2]
})"},
          {"uneven_padding_as_pad", "the padding differs between opposite sides",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {-2.5, 1.0, -1.0, 2.5}} : f32[1,1,2,2]
  %y = conv2d(%x, %w) {padding = [1,1]} : f32[1,1,4,4]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
