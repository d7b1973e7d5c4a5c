// The same elements under shapes of fewer axes.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& shape_cases() {
  constexpr std::string_view kOneScale = "quantized values have one scale";
  static const Cases cases = {
      {
          {"matmul_of_joined_batches", R"(graph @g {stage = canonical} (%a: f32[2,3,4,5], %b: f32[2,3,5,2]) -> (%y) {
  %y = matmul(%a, %b) : f32[2,3,4,2]
})",
           "reshape reshape matmul reshape"},
          {"matmul_of_joined_batches",
           R"(graph @g {stage = canonical} (%a: i8{0.5:1}[2,3,4,5], %b: i8{0.25}[2,3,5,2]) -> (%y) {
  %y = matmul(%a, %b) {q_scale = [0.75], q_zero = 3} : i8{0.75:3}[2,3,4,2]
})",
           "reshape reshape matmul reshape", 0, Values::random},
          {"linear_of_rows", R"(graph @g {stage = canonical} (%x: i8{0.5:1}[2,2,1,3]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, -2, 3, 4, 5, -6}, q_scale = [0.25, 0.5]} : i8{0.25,0.5}[2,3]
  %y = linear(%x, %w) {q_scale = [0.75]} : i8{0.75}[2,2,1,2]
})",
           "reshape linear reshape", 0, Values::random},
          {"softmax_of_rows", R"(graph @g {stage = canonical} (%x: i8{0.5:1}[2,3,5]) -> (%y) {
  %y = softmax(%x) {axis = 2, q_scale = [0.00390625], q_zero = -128} : i8{0.00390625:-128}[2,3,5]
})",
           "reshape softmax reshape", 0, Values::random},
          {"layer_norm_of_rows", R"(graph @g {stage = canonical} (%x: i8{0.5:1}[2,3,2,2]) -> (%y) {
  %w = constant() {value = f32[2,2] {1, 0.5, -2, 1}} : f32[2,2]
  %y = layer_norm(%x, %w, _) {axes = 2, q_scale = [0.02]} : i8{0.02}[2,3,2,2]
})",
           "reshape layer_norm reshape", 0, Values::random},
          {"operand_as_row", R"(graph @g {stage = canonical} (%x: f32[2,3,5], %z: f32[1,5]) -> (%y) {
  %y = sub(%x, %z) : f32[2,3,5]
})",
           "reshape reshape sub reshape"},
          {"operand_as_row", R"(graph @g {stage = canonical} (%x: i8{0.5:1}[2,3,5], %z: i8{0.25}[3,5]) -> (%y) {
  %y = sub(%z, %x) {q_scale = [0.75]} : i8{0.75}[2,3,5]
})",
           "reshape reshape sub reshape", 0, Values::random},
      },
      {
          {"linear_of_rows", "x has more than three axes",
           R"(graph @g {stage = canonical} (%x: f32[2,2,3], %w: f32[4,3]) -> (%y) {
  %y = linear(%x, %w) : f32[2,2,4]
})"},
          {"linear_of_rows", "x has one scale",
           R"(graph @g {stage = canonical} (%x: i8{0.5,0.25}[2,2,1,3], %w: i8{0.5}[4,3]) -> (%y) {
  %y = linear(%x, %w) {q_scale = [0.5]} : i8{0.5}[2,2,1,4]
})"},
          {"matmul_of_joined_batches", "a and b have the same batches, along more than one axis",
           R"(graph @g {stage = canonical} (%a: f32[2,3,4,5], %b: f32[2,1,5,2]) -> (%y) {
  %y = matmul(%a, %b) : f32[2,3,4,2]
})"},
          {"matmul_of_joined_batches", kOneScale,
           R"(graph @g {stage = canonical} (%a: i8{0.5}[1,1,1,2], %b: i8{0.25,0.5@3}[1,1,2,2]) -> (%y) {
  %y = matmul(%a, %b) {q_scale = [0.75]} : i8{0.75}[1,1,1,2]
})"},
          {"softmax_of_rows", "x has more than two axes, and the axis is the last",
           R"(graph @g {stage = canonical} (%x: f32[2,3,5]) -> (%y) {
  %y = softmax(%x) {axis = 1} : f32[2,3,5]
})"},
          {"softmax_of_rows", kOneScale, R"(graph @g {stage = canonical} (%x: i8{0.5,0.25@2}[1,1,2]) -> (%y) {
  %y = softmax(%x) {q_scale = [0.01]} : i8{0.01}[1,1,2]
})"},
          {"layer_norm_of_rows", "x has more than two axes", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = layer_norm(%x, _, _) : f32[2,3]
})"},
          {"layer_norm_of_rows", kOneScale, R"(graph @g {stage = canonical} (%x: i8{0.5,0.25@2}[1,1,2]) -> (%y) {
  %y = layer_norm(%x, _, _) {q_scale = [0.01]} : i8{0.01}[1,1,2]
})"},
          {"operand_as_row", "x has more than two axes or z more than one; their last axes are the same",
           R"(graph @g {stage = canonical} (%x: f32[2,3], %z: f32[3]) -> (%y) {
  %y = add(%x, %z) : f32[2,3]
})"},
          {"operand_as_row", kOneScale,
           R"(graph @g {stage = canonical} (%x: i8{0.5}[2,2,2], %z: i8{0.25,0.5}[2]) -> (%y) {
  %y = add(%x, %z) {q_scale = [0.75]} : i8{0.75}[2,2,2]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
