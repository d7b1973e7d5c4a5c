// Convolutions that enlarge or shrink images as convolutions of stride 1.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& stride_cases() {
  static const Cases cases = {
      {
          {"transposed_as_phases", R"(graph @g {stage = canonical} (%x: f32[2,2,3,2]) -> (%y) {
  %w = constant() {value = f32[2,3,2,2] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4, -1, -2, 0.5, 1, 2, -3, 1, 0.75}} : f32[2,3,2,2]
  %b = constant() {value = f32[3] {1, 2, 3}} : f32[3]
  %y = conv_transpose2d(%x, %w, %b) {stride = [2,2]} : f32[2,3,6,4]
})",
           "conv2d reshape permute reshape permute reshape", 1e-6, Values::edge},
          // Three taps at a stride of two: one phase has two of them, the other one; a border is cut off.
          {"transposed_as_phases", R"(graph @g {stage = canonical} (%x: f32[1,1,3,4]) -> (%y) {
  %w = constant() {value = f32[1,2,3,3] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4, -1, -2}} : f32[1,2,3,3]
  %y = conv_transpose2d(%x, %w) {stride = [2,2], padding = [1,1], output_padding = [1,0]} : f32[1,2,6,7]
})",
           "conv2d reshape permute reshape permute reshape slice slice", 1e-6, Values::edge},
          // Groups, one axis only, dilated taps, more rows than any tap reaches, and sizes known only at run time.
          {"transposed_as_phases", R"(graph @g {stage = canonical} (%x: f32[1,4,3,2]) -> (%y) {
  %w = constant() {value = f32[4,2,2,1] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4}} : f32[4,2,2,1]
  %b = constant() {value = f32[4] {1, 2, 3, 4}} : f32[4]
  %y = conv_transpose2d(%x, %w, %b) {stride = [3,1], dilation = [2,1], output_padding = [2,0], groups = 2} : f32[1,4,11,2]
})",
           "conv2d reshape permute reshape slice", 1e-6, Values::edge},
          {"transposed_as_phases",
           R"(graph @g {stage = canonical, symbols = [n: 1..8 = 2, h: 1..64 = 3, w: 1..64 = 4]} (%x: f32[n,2,h,w]) -> (%y) {
  %k = constant() {value = f32[2,1,3,2] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0}} : f32[2,1,3,2]
  %y = conv_transpose2d(%x, %k) {stride = [2,2], padding = [1,0]} : f32[n,1,2*h - 1,2*w]
})",
           "conv2d reshape permute reshape permute reshape slice", 1e-6, Values::edge},
          {"transposed_as_dilated", R"(graph @g {stage = canonical} (%x: f32[2,2,3,2]) -> (%y) {
  %w = constant() {value = f32[2,3,2,2] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4, -1, -2, 0.5, 1, 2, -3, 1, 0.75}} : f32[2,3,2,2]
  %b = constant() {value = f32[3] {1, 2, 3}} : f32[3]
  %y = conv_transpose2d(%x, %w, %b) {stride = [2,2]} : f32[2,3,6,4]
})",
           "reshape pad reshape pad reshape conv2d", 1e-6, Values::edge},
          {"transposed_as_dilated", R"(graph @g {stage = canonical} (%x: f32[1,1,3,4]) -> (%y) {
  %w = constant() {value = f32[1,2,3,3] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4, -1, -2}} : f32[1,2,3,3]
  %y = conv_transpose2d(%x, %w) {stride = [2,2], padding = [1,1], output_padding = [1,0]} : f32[1,2,6,7]
})",
           "reshape pad reshape pad reshape conv2d", 1e-6, Values::edge},
          // At stride 1 nothing stands between the pixels; padding beyond the window's reach cuts the image.
          {"transposed_as_dilated", R"(graph @g {stage = canonical} (%x: f32[1,4,5,6]) -> (%y) {
  %w = constant() {value = f32[4,1,2,2] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4}} : f32[4,1,2,2]
  %y = conv_transpose2d(%x, %w) {padding = [2,1,1,3], dilation = [1,2], groups = 2} : f32[1,2,3,4]
})",
           "slice slice conv2d", 1e-6, Values::edge},
          {"strided_as_channels", R"(graph @g {stage = canonical} (%x: f32[2,1,6,6]) -> (%y) {
  %w = constant() {value = f32[2,1,3,3] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4, -1, -2}} : f32[2,1,3,3]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = conv2d(%x, %w, %b) {stride = [3,3]} : f32[2,2,2,2]
})",
           "reshape permute reshape permute reshape conv2d", 1e-6, Values::edge},
          // A window wider than its step, padding, and columns at the end that no window reaches.
          {"strided_as_channels", R"(graph @g {stage = canonical} (%x: f32[1,1,5,8]) -> (%y) {
  %w = constant() {value = f32[2,1,3,3] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4, -1, -2}} : f32[2,1,3,3]
  %y = conv2d(%x, %w) {stride = [2,4], padding = [1,0]} : f32[1,2,3,2]
})",
           "pad reshape permute reshape permute reshape conv2d", 1e-6, Values::edge},
          {"strided_as_channels", R"(graph @g {stage = canonical} (%x: f32[1,4,7,9]) -> (%y) {
  %w = constant() {value = f32[2,2,2,2] {1, -2, 0.5, 1.5, -1, 0.25, 2, -0.5, 3, -2, 1, 0, 1, 2, 3, 4}} : f32[2,2,2,2]
  %y = conv2d(%x, %w) {stride = [1,4], dilation = [2,1], groups = 2} : f32[1,2,5,2]
})",
           "slice reshape permute reshape conv2d", 1e-6, Values::edge},
          {"pad_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,2,2]) -> (%y) {
  %y = pad(%x) {padding = [0,0,1,0,0,0,2,3]} : f32[2,3,5,5]
})",
           "conv2d", 0},
      },
      {
          {"transposed_as_phases", "the weights are real",
           R"(graph @g {stage = canonical} (%x: i32[1,1,2,2]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %y = conv_transpose2d(%x, %w) {stride = [2,2]} : i32[1,1,3,3]
})"},
          {"transposed_as_phases", "the stride is more than 1",
           R"(graph @g {stage = canonical} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %y = conv_transpose2d(%x, %w) : f32[1,1,2,2]
})"},
          {"transposed_as_dilated", "the weights are real",
           R"(graph @g {stage = canonical} (%x: i32[1,1,2,2]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %y = conv_transpose2d(%x, %w) {stride = [2,2]} : i32[1,1,3,3]
})"},
          {"transposed_as_dilated", "the width of the image is fixed or rows have stride 1",
           R"(graph @g {stage = canonical, symbols = [w: 2..64 = 4]} (%x: f32[1,1,2,w]) -> (%y) {
  %k = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %y = conv_transpose2d(%x, %k) {stride = [2,2]} : f32[1,1,4,2*w]
})"},
          {"transposed_as_dilated", "no result is empty",
           R"(graph @g {stage = canonical, symbols = [h: 1..64 = 4]} (%x: f32[1,1,h,2]) -> (%y) {
  %k = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %y = conv_transpose2d(%x, %k) {padding = [1,0]} : f32[1,1,h - 1,3]
})"},
          {"strided_as_channels", "the weights are real",
           R"(graph @g {stage = canonical} (%x: i32[1,1,2,2]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %y = conv2d(%x, %w) {stride = [2,2]} : i32[1,1,1,1]
})"},
          {"strided_as_channels", "the stride is more than 1",
           R"(graph @g {stage = canonical} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %y = conv2d(%x, %w) : f32[1,1,2,2]
})"},
          {"strided_as_channels", "the size of the image is fixed, and windows are larger than the padding",
           R"(graph @g {stage = canonical, symbols = [w: 2..64 = 4]} (%x: f32[1,1,2,w]) -> (%y) {
  %k = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %y = conv2d(%x, %k) {stride = [2,1]} : f32[1,1,1,w - 1]
})"},
          {"pad_as_depthwise", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: i32[1,1,2,2]) -> (%y) {
  %y = pad(%x) {padding = [0,0,1,0,0,0,2,3]} : i32[1,1,5,5]
})"},
          {"pad_as_depthwise", "zeros around the rows and columns of images",
           R"(graph @g {stage = canonical} (%x: f32[1,1,2,2]) -> (%y) {
  %y = pad(%x) {padding = [0,1,1,0,0,0,2,3]} : f32[1,2,5,5]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
