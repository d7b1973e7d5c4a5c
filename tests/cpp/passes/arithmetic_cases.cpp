// Arithmetic with constants as depthwise convolutions.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& arithmetic_cases() {
  static const Cases cases = {
      {
          {"multiply_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[3,1,1] {0.5, -2, 0}} : f32[3,1,1]
  %y = mul(%x, %c) : f32[2,3,4,3]
})",
           "conv2d"},
          {"multiply_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[2] {0.5, -2}} : f32[2]
  %y = mul(%x, %c) : f32[2,3,2]
})",
           "reshape conv2d reshape"},
          {"multiply_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[] {0.3}} : f32[]
  %y = mul(%c, %x) : f32[2,3,4,3]
})",
           "conv2d"},
          {"multiply_as_depthwise",
           R"(graph @g {stage = canonical, symbols = [n: 1..4 = 2, h: 1..9 = 3, w: 1..9 = 2]} (%x: f32[n,2,h,w]) -> (%y) {
  %c = constant() {value = f32[] {0.3}} : f32[]
  %y = mul(%x, %c) : f32[n,2,h,w]
})",
           "conv2d"},
          {"divide_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[3,1,1] {0.3, -2, 7}} : f32[3,1,1]
  %y = div(%x, %c) : f32[2,3,4,3]
})",
           "conv2d", 1.5e-7},
          {"add_constant_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[1,3,1,1] {0.5, -2, 1}} : f32[1,3,1,1]
  %y = add(%x, %c) : f32[2,3,4,3]
})",
           "conv2d"},
          {"add_constant_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[3] {0.5, -2, 1}} : f32[3]
  %y = add(%x, %c) : f32[2,3]
})",
           "reshape conv2d reshape"},
          {"subtract_constant_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[] {0.5}} : f32[]
  %y = sub(%x, %c) : f32[2,3,4,3]
})",
           "conv2d"},
          {"subtract_from_constant_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[] {0.5}} : f32[]
  %y = sub(%c, %x) : f32[2,3,4,3]
})",
           "conv2d"},
          {"several_as_pairs",
           R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[2,3], %c: f32[3], %d: f32[2,3]) -> (%y) {
  %y = nary(%a, %b, %c, %d) {coefficients = [1.0, 2.0, -1.0, -0.3]} : f32[2,3]
})",
           "mul add sub mul add"},
          {"several_as_pairs", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[3], %c: f32[2,1]) -> (%y) {
  %y = nary(%a, %b, %c) {op = maximum} : f32[2,3]
})",
           "maximum maximum"},
          {"several_as_pairs", R"(graph @g {stage = canonical} (%a: f32[2,3]) -> (%y) {
  %y = nary(%a) {coefficients = [-1.0]} : f32[2,3]
})",
           "mul"},
          {"negate_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = neg(%x) : f32[2,3,4,3]
})",
           "conv2d"},
          {"negate_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[5]) -> (%y) {
  %y = neg(%x) : f32[5]
})",
           "reshape conv2d reshape"},
          {"subtract_as_add", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[3]) -> (%y) {
  %y = sub(%a, %b) : f32[2,3]
})",
           "neg add"},
          {"power_of_two_as_product", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {2}} : f32[]
  %y = pow(%x, %c) : f32[2,3]
})",
           "mul"},
          {"broadcast_as_expand", R"(graph @g {stage = canonical} (%a: f32[2,3,2,2], %b: f32[2,3,1,1]) -> (%y) {
  %y = mul(%a, %b) : f32[2,3,2,2]
})",
           "expand mul"},
          {"broadcast_as_expand", R"(graph @g {stage = canonical} (%a: f32[3], %b: f32[2,3]) -> (%y) {
  %y = sub(%a, %b) : f32[2,3]
})",
           "expand sub"},
      },
      {
          {"multiply_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,2] {1, 2, 3, 4, 5, 6}} : f32[3,2]
  %y = mul(%x, %c) : f32[2,3,2]
})"},
          {"divide_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,2] {1, 2, 3, 4, 5, 6}} : f32[3,2]
  %y = div(%x, %c) : f32[2,3,2]
})"},
          {"add_constant_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,2] {1, 2, 3, 4, 5, 6}} : f32[3,2]
  %y = add(%x, %c) : f32[2,3,2]
})"},
          {"subtract_constant_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,2] {1, 2, 3, 4, 5, 6}} : f32[3,2]
  %y = sub(%x, %c) : f32[2,3,2]
})"},
          {"subtract_from_constant_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,2] {1, 2, 3, 4, 5, 6}} : f32[3,2]
  %y = sub(%c, %x) : f32[2,3,2]
})"},
          {"multiply_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %c = constant() {value = i32[] {2}} : i32[]
  %y = mul(%x, %c) : i32[2,3]
})"},
          {"multiply_as_depthwise", "c is real and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[1]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = mul(%x, %c) : f32[2]
})"},
          {"negate_as_depthwise", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %y = neg(%x) : i32[2,3]
})"},
          {"subtract_as_add", "the values are of a float type",
           R"(graph @g {stage = canonical} (%a: i32[2], %b: i32[2]) -> (%y) {
  %y = sub(%a, %b) : i32[2]
})"},
          {"power_of_two_as_product", "the exponent is 2 everywhere",
           R"(graph @g {stage = canonical} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {3}} : f32[]
  %y = pow(%x, %c) : f32[2]
})"},
          {"power_of_two_as_product", "the result is shaped like x",
           R"(graph @g {stage = canonical} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[1,1] {2}} : f32[1,1]
  %y = pow(%x, %c) : f32[1,2]
})"},
          {"several_as_pairs", "the values are of a float type",
           R"(graph @g {stage = canonical} (%a: i32[2], %b: i32[2]) -> (%y) {
  %y = nary(%a, %b) : i32[2]
})"},
          {"several_as_pairs", "no coefficient is 0",
           R"(graph @g {stage = canonical} (%a: f32[2], %b: f32[2]) -> (%y) {
  %y = nary(%a, %b) {coefficients = [1.0, 0.0]} : f32[2]
})"},
          {"broadcast_as_expand", "no operand of a maximum or minimum is a constant",
           R"(graph @g {stage = canonical} (%a: f32[2,3,2,2]) -> (%y) {
  %c = constant() {value = f32[] {-0.5}} : f32[]
  %y = maximum(%a, %c) : f32[2,3,2,2]
})"},
          {"broadcast_as_expand", "one operand alone is smaller than the result",
           R"(graph @g {stage = canonical} (%a: f32[3,1], %b: f32[1,2]) -> (%y) {
  %y = add(%a, %b) : f32[3,2]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
