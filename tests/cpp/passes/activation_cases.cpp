// Compositions that are one operator.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& activation_cases() {
  static const Cases cases = {
      {
          {"prelu_from_maximum", R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[] {0.3}} : f32[]
  %m = mul(%c, %x) : f32[2,3,2]
  %y = maximum(%x, %m) : f32[2,3,2]
})",
           "leaky_relu"},
          {"prelu_from_maximum", R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,1] {0.3, -2, 1}} : f32[3,1]
  %m = mul(%c, %x) : f32[2,3,2]
  %y = maximum(%m, %x) : f32[2,3,2]
})",
           "prelu"},
          {"prelu_from_minimum", R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[1] {1.5}} : f32[1]
  %m = mul(%c, %x) : f32[2,3,2]
  %y = minimum(%x, %m) : f32[2,3,2]
})",
           "leaky_relu"},
          {"prelu_from_minimum", R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[3,1] {1, 2, 4}} : f32[3,1]
  %m = mul(%c, %x) : f32[2,3,2]
  %y = minimum(%x, %m) : f32[2,3,2]
})",
           "prelu"},
          {"silu_from_product", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %s = sigmoid(%x) : f32[2,3]
  %y = mul(%s, %x) : f32[2,3]
})",
           "silu", 1e-6, Values::edge},
          {"hardswish_from_product", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %s = hardsigmoid(%x) : f32[2,3]
  %y = mul(%x, %s) : f32[2,3]
})",
           "hardswish", 1e-6, Values::edge},
          {"clamp_from_maximum", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {0.5}} : f32[]
  %y = maximum(%x, %c) : f32[2,3]
})",
           "clamp"},
          {"clamp_from_minimum", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %y = minimum(%c, %x) : f32[2,3]
})",
           "clamp"},
          {"clamp_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %t = constant() {value = f32[] {0.5}} : f32[]
  %v = constant() {value = f32[] {0.5}} : f32[]
  %m = le(%x, %t) : bool[2,3]
  %y = where(%m, %v, %x) : f32[2,3]
})",
           "clamp"},
          {"clamp_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %t = constant() {value = f32[] {0}} : f32[]
  %v = constant() {value = f32[] {0}} : f32[]
  %m = le(%x, %t) : bool[2,3]
  %y = where(%m, %v, %x) : f32[2,3]
})",
           "clamp"},
          {"prelu_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[] {0.3}} : f32[]
  %g = gt(%x, %z) : bool[2,3]
  %m = mul(%x, %c) : f32[2,3]
  %y = where(%g, %x, %m) : f32[2,3]
})",
           "leaky_relu"},
          {"prelu_from_where_below", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[] {0.3}} : f32[]
  %g = lt(%x, %z) : bool[2,3]
  %m = mul(%x, %c) : f32[2,3]
  %y = where(%g, %m, %x) : f32[2,3]
})",
           "leaky_relu"},
          {"prelu_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[3] {0.3, -2, 5}} : f32[3]
  %g = ge(%x, %z) : bool[2,3]
  %m = mul(%x, %c) : f32[2,3]
  %y = where(%g, %x, %m) : f32[2,3]
})",
           "prelu"},
          {"prelu_from_where_below", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[3] {0.3, -2, 5}} : f32[3]
  %g = le(%x, %z) : bool[2,3]
  %m = mul(%x, %c) : f32[2,3]
  %y = where(%g, %m, %x) : f32[2,3]
})",
           "prelu"},
          {"hardsigmoid_from_quotient", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {3}} : f32[]
  %d = constant() {value = f32[] {6}} : f32[]
  %s = add(%x, %c) : f32[2,3]
  %k = clamp(%s) {min = 0, max = 6} : f32[2,3]
  %y = div(%k, %d) : f32[2,3]
})",
           "hardsigmoid", 3e-7},
          {"hardswish_from_quotient", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {3}} : f32[]
  %d = constant() {value = f32[] {6}} : f32[]
  %s = add(%x, %c) : f32[2,3]
  %k = clamp(%s) {min = 0, max = 6} : f32[2,3]
  %m = mul(%x, %k) : f32[2,3]
  %y = div(%m, %d) : f32[2,3]
})",
           "hardswish", 1e-6, Values::edge},
          {"hardswish_from_quotient", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {3}} : f32[]
  %d = constant() {value = f32[] {0.166666672}} : f32[]
  %s = add(%x, %c) : f32[2,3]
  %k = clamp(%s) {min = 0, max = 6} : f32[2,3]
  %m = mul(%x, %k) : f32[2,3]
  %y = mul(%m, %d) : f32[2,3]
})",
           "hardswish", 1e-6, Values::edge},
      },
      {
          {"prelu_from_maximum", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %c = constant() {value = i32[] {0}} : i32[]
  %m = mul(%c, %x) : i32[2]
  %y = maximum(%x, %m) : i32[2]
})"},
          {"prelu_from_maximum", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[1,2] {0.1, 0.2}} : f32[1,2]
  %m = mul(%c, %x) : f32[1,2]
  %y = maximum(%x, %m) : f32[1,2]
})"},
          {"prelu_from_maximum", "c <= 1 and c is not 0, everywhere",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {1.5}} : f32[]
  %m = mul(%c, %x) : f32[2]
  %y = maximum(%x, %m) : f32[2]
})"},
          {"prelu_from_maximum", "c <= 1 and c is not 0, everywhere",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {0}} : f32[]
  %m = mul(%c, %x) : f32[2]
  %y = maximum(%x, %m) : f32[2]
})"},
          {"prelu_from_maximum", "c is one number or one a channel",
           R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[2] {0.1, 0.2}} : f32[2]
  %m = mul(%c, %x) : f32[2,3,2]
  %y = maximum(%x, %m) : f32[2,3,2]
})"},
          {"prelu_from_minimum", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %c = constant() {value = i32[] {2}} : i32[]
  %m = mul(%c, %x) : i32[2]
  %y = minimum(%x, %m) : i32[2]
})"},
          {"prelu_from_minimum", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[1,2] {2, 2}} : f32[1,2]
  %m = mul(%c, %x) : f32[1,2]
  %y = minimum(%x, %m) : f32[1,2]
})"},
          {"prelu_from_minimum", "c >= 1 and finite, everywhere", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {0.5}} : f32[]
  %m = mul(%c, %x) : f32[2]
  %y = minimum(%x, %m) : f32[2]
})"},
          {"prelu_from_minimum", "c is one number or one a channel",
           R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %m = mul(%c, %x) : f32[2,3,2]
  %y = minimum(%x, %m) : f32[2,3,2]
})"},
          {"clamp_from_maximum", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %c = constant() {value = i32[] {1}} : i32[]
  %y = maximum(%x, %c) : i32[2]
})"},
          {"clamp_from_maximum", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[1,1] {1}} : f32[1,1]
  %y = maximum(%x, %c) : f32[1,2]
})"},
          {"clamp_from_maximum", "c is one number", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = maximum(%x, %c) : f32[2]
})"},
          {"clamp_from_maximum", "c is not NaN", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {nan}} : f32[]
  %y = maximum(%x, %c) : f32[2]
})"},
          {"clamp_from_minimum", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %c = constant() {value = i32[] {1}} : i32[]
  %y = minimum(%x, %c) : i32[2]
})"},
          {"clamp_from_minimum", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[1,1] {1}} : f32[1,1]
  %y = minimum(%x, %c) : f32[1,2]
})"},
          {"clamp_from_minimum", "c is one number", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %y = minimum(%x, %c) : f32[2]
})"},
          {"clamp_from_minimum", "c is not NaN", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {nan}} : f32[]
  %y = minimum(%x, %c) : f32[2]
})"},
          {"clamp_from_where", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %t = constant() {value = i32[] {1}} : i32[]
  %v = constant() {value = i32[] {1}} : i32[]
  %m = le(%x, %t) : bool[2]
  %y = where(%m, %v, %x) : i32[2]
})"},
          {"clamp_from_where", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %t = constant() {value = f32[1,1] {1}} : f32[1,1]
  %v = constant() {value = f32[1,1] {1}} : f32[1,1]
  %m = le(%x, %t) : bool[1,2]
  %y = where(%m, %v, %x) : f32[1,2]
})"},
          {"clamp_from_where", "t and v are one and the same number",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %t = constant() {value = f32[] {1}} : f32[]
  %v = constant() {value = f32[] {2}} : f32[]
  %m = le(%x, %t) : bool[2,3]
  %y = where(%m, %v, %x) : f32[2,3]
})"},
          {"prelu_from_where", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %z = constant() {value = i32[] {0}} : i32[]
  %c = constant() {value = i32[] {2}} : i32[]
  %g = gt(%x, %z) : bool[2]
  %m = mul(%x, %c) : i32[2]
  %y = where(%g, %x, %m) : i32[2]
})"},
          {"prelu_from_where_below", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %z = constant() {value = i32[] {0}} : i32[]
  %c = constant() {value = i32[] {2}} : i32[]
  %g = lt(%x, %z) : bool[2]
  %m = mul(%x, %c) : i32[2]
  %y = where(%g, %m, %x) : i32[2]
})"},
          {"prelu_from_where", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[1,1] {2}} : f32[1,1]
  %g = gt(%x, %z) : bool[2]
  %m = mul(%x, %c) : f32[1,2]
  %y = where(%g, %x, %m) : f32[1,2]
})"},
          {"prelu_from_where_below", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[1,1] {2}} : f32[1,1]
  %g = lt(%x, %z) : bool[2]
  %m = mul(%x, %c) : f32[1,2]
  %y = where(%g, %m, %x) : f32[1,2]
})"},
          {"prelu_from_where", "the bound is 0 everywhere", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %z = constant() {value = f32[] {1}} : f32[]
  %c = constant() {value = f32[] {2}} : f32[]
  %g = gt(%x, %z) : bool[2,3]
  %m = mul(%x, %c) : f32[2,3]
  %y = where(%g, %x, %m) : f32[2,3]
})"},
          {"prelu_from_where_below", "the bound is 0 everywhere",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %z = constant() {value = f32[] {1}} : f32[]
  %c = constant() {value = f32[] {2}} : f32[]
  %g = lt(%x, %z) : bool[2,3]
  %m = mul(%x, %c) : f32[2,3]
  %y = where(%g, %m, %x) : f32[2,3]
})"},
          {"prelu_from_where", "c is one number or one a channel",
           R"(graph @g {stage = imported} (%x: f32[1,3,2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[2] {2, 3}} : f32[2]
  %g = gt(%x, %z) : bool[1,3,2]
  %m = mul(%x, %c) : f32[1,3,2]
  %y = where(%g, %x, %m) : f32[1,3,2]
})"},
          {"prelu_from_where_below", "c is one number or one a channel",
           R"(graph @g {stage = imported} (%x: f32[1,3,2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = constant() {value = f32[2] {2, 3}} : f32[2]
  %g = lt(%x, %z) : bool[1,3,2]
  %m = mul(%x, %c) : f32[1,3,2]
  %y = where(%g, %m, %x) : f32[1,3,2]
})"},
          {"hardsigmoid_from_quotient", "the values are real",
           R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %c = constant() {value = i32[] {3}} : i32[]
  %d = constant() {value = i32[] {6}} : i32[]
  %s = add(%x, %c) : i32[2]
  %k = clamp(%s) {min = 0, max = 6} : i32[2]
  %y = div(%k, %d) : i32[2]
})"},
          {"hardsigmoid_from_quotient", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[1,1] {3}} : f32[1,1]
  %d = constant() {value = f32[1,1] {6}} : f32[1,1]
  %s = add(%x, %c) : f32[1,2]
  %k = clamp(%s) {min = 0, max = 6} : f32[1,2]
  %y = div(%k, %d) : f32[1,2]
})"},
          {"hardsigmoid_from_quotient", "the constants are 3, 0, 6 and 6 (or 1/6, as a factor)",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {2}} : f32[]
  %d = constant() {value = f32[] {6}} : f32[]
  %s = add(%x, %c) : f32[2,3]
  %k = clamp(%s) {min = 0, max = 6} : f32[2,3]
  %y = div(%k, %d) : f32[2,3]
})"},
          {"hardswish_from_quotient", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %c = constant() {value = i32[] {3}} : i32[]
  %d = constant() {value = i32[] {6}} : i32[]
  %s = add(%x, %c) : i32[2]
  %k = clamp(%s) {min = 0, max = 6} : i32[2]
  %m = mul(%x, %k) : i32[2]
  %y = div(%m, %d) : i32[2]
})"},
          {"hardswish_from_quotient", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %c = constant() {value = f32[1,1] {3}} : f32[1,1]
  %d = constant() {value = f32[1,1] {6}} : f32[1,1]
  %s = add(%x, %c) : f32[1,3]
  %k = clamp(%s) {min = 0, max = 6} : f32[1,3]
  %m = mul(%x, %k) : f32[1,3]
  %y = div(%m, %d) : f32[1,3]
})"},
          {"hardswish_from_quotient", "the constants are 3, 0, 6 and 6 (or 1/6, as a factor)",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %c = constant() {value = f32[] {3}} : f32[]
  %d = constant() {value = f32[] {6}} : f32[]
  %s = add(%x, %c) : f32[2,3]
  %k = clamp(%s) {min = 0, max = 6} : f32[2,3]
  %m = mul(%x, %k) : f32[2,3]
  %y = mul(%m, %d) : f32[2,3]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
