// Elementwise nodes that change nothing.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& identity_cases() {
  static const Cases cases = {
      {
          {"add_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[3] {-0, -0, -0}} : f32[3]
  %y = add(%x, %c) : f32[2,3]
})",
           ""},
          {"add_nothing", R"(graph @g {stage = imported} (%x: i32[2,3]) -> (%y) {
  %c = constant() {value = i32[] {0}} : i32[]
  %y = add(%x, %c) : i32[2,3]
})",
           ""},
          {"subtract_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[1,1] {0}} : f32[1,1]
  %y = sub(%x, %c) : f32[2,3]
})",
           ""},
          {"multiply_by_one", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[3] {1, 1, 1}} : f32[3]
  %y = mul(%c, %x) : f32[2,3]
})",
           ""},
          {"divide_by_one", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {1}} : f32[]
  %y = div(%x, %c) : f32[2,3]
})",
           ""},
          {"power_of_one", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {1}} : f32[]
  %y = pow(%x, %c) : f32[2,3]
})",
           ""},
          {"negate_twice", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = neg(%x) : f32[2,3]
  %y = neg(%i) : f32[2,3]
})",
           ""},
          {"relu_twice", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = relu(%x) : f32[2,3]
  %y = relu(%i) : f32[2,3]
})",
           "relu"},
          {"abs_twice", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = abs(%x) : f32[2,3]
  %y = abs(%i) : f32[2,3]
})",
           "abs"},
          {"clamp_without_bounds", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) : f32[2,3]
})",
           ""},
          {"clamp_as_relu", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0} : f32[2,3]
})",
           "relu"},
          {"clamp_of_clamp", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = clamp(%x) {min = -1, max = 2} : f32[2,3]
  %y = clamp(%i) {min = 0.5, max = 3} : f32[2,3]
})",
           "clamp"},
          {"clamp_of_clamp", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = clamp(%x) {min = 1, max = 2} : f32[2,3]
  %y = clamp(%i) {min = -3, max = -2} : f32[2,3]
})",
           "clamp"},
          {"clamp_of_relu", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = relu(%x) : f32[2,3]
  %y = clamp(%i) {min = -0.5, max = 3} : f32[2,3]
})",
           "clamp"},
          {"relu_of_clamp", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = clamp(%x) {min = -0.5, max = 3} : f32[2,3]
  %y = relu(%i) : f32[2,3]
})",
           "clamp"},
          {"relu_of_clamp", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = clamp(%x) {min = -5, max = -3} : f32[2,3]
  %y = relu(%i) : f32[2,3]
})",
           "clamp"},
      },
      {
          {"add_nothing", "c is -0 everywhere (0 for integers)", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {0}} : f32[]
  %y = add(%x, %c) : f32[2,3]
})"},
          {"add_nothing", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %c = constant() {value = f32[1,3] {-0, -0, -0}} : f32[1,3]
  %y = add(%x, %c) : f32[1,3]
})"},
          {"subtract_nothing", "c is +0 everywhere", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {-0}} : f32[]
  %y = sub(%x, %c) : f32[2,3]
})"},
          {"subtract_nothing", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[1]) -> (%y) {
  %c = constant() {value = f32[2] {0, 0}} : f32[2]
  %y = sub(%x, %c) : f32[2]
})"},
          {"multiply_by_one", "c is 1 everywhere", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = mul(%x, %c) : f32[2]
})"},
          {"multiply_by_one", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[1]) -> (%y) {
  %c = constant() {value = f32[2] {1, 1}} : f32[2]
  %y = mul(%x, %c) : f32[2]
})"},
          {"divide_by_one", "c is 1 everywhere", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = div(%x, %c) : f32[2]
})"},
          {"divide_by_one", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[1]) -> (%y) {
  %c = constant() {value = f32[2] {1, 1}} : f32[2]
  %y = div(%x, %c) : f32[2]
})"},
          {"power_of_one", "c is 1 everywhere", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = pow(%x, %c) : f32[2]
})"},
          {"power_of_one", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[1]) -> (%y) {
  %c = constant() {value = f32[2] {1, 1}} : f32[2]
  %y = pow(%x, %c) : f32[2]
})"},
          {"clamp_without_bounds", "both bounds are infinite", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0} : f32[2,3]
})"},
          {"clamp_as_relu", "the bounds are 0 and inf", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 6} : f32[2,3]
})"},
          {"clamp_of_clamp", "the bounds of each are in order", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = clamp(%x) {min = 1, max = -1} : f32[2,3]
  %y = clamp(%i) {min = 0, max = 3} : f32[2,3]
})"},
          {"clamp_of_relu", "the bounds are in order and b >= 0",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = relu(%x) : f32[2,3]
  %y = clamp(%i) {min = -2, max = -1} : f32[2,3]
})"},
          {"relu_of_clamp", "the bounds are in order", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %i = clamp(%x) {min = 1, max = -1} : f32[2,3]
  %y = relu(%i) : f32[2,3]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
