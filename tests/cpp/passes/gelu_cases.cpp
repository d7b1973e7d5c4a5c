// GELU written out.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& gelu_cases() {
  static const Cases cases = {
      {
          {"gelu_from_erf_half_first", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {1.41421354}} : f32[]
  %q = div(%x, %s) : f32[2,3]
  %e = erf(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%h, %x) : f32[2,3]
  %y = mul(%m, %f) : f32[2,3]
})",
           "gelu", 2e-6, Values::edge},
          {"gelu_from_erf_half_last", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.707106769}} : f32[]
  %q = mul(%x, %s) : f32[2,3]
  %e = erf(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%x, %f) : f32[2,3]
  %y = mul(%m, %h) : f32[2,3]
})",
           "gelu", 2e-6, Values::edge},
          {"gelu_from_erf_half_inside", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {1.41421354}} : f32[]
  %q = div(%x, %s) : f32[2,3]
  %e = erf(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%f, %h) : f32[2,3]
  %y = mul(%m, %x) : f32[2,3]
})",
           "gelu", 2e-6, Values::edge},
          {"gelu_from_tanh_half_first", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.797884583}} : f32[]
  %a = constant() {value = f32[] {0.044715}} : f32[]
  %t = constant() {value = f32[] {3}} : f32[]
  %p = pow(%x, %t) : f32[2,3]
  %k = mul(%a, %p) : f32[2,3]
  %i = add(%x, %k) : f32[2,3]
  %q = mul(%s, %i) : f32[2,3]
  %e = tanh(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%h, %x) : f32[2,3]
  %y = mul(%m, %f) : f32[2,3]
})",
           "gelu", 2e-6, Values::edge},
          {"gelu_from_tanh_half_last", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.797884583}} : f32[]
  %a = constant() {value = f32[] {0.044715}} : f32[]
  %t = constant() {value = f32[] {3}} : f32[]
  %p = pow(%x, %t) : f32[2,3]
  %k = mul(%a, %p) : f32[2,3]
  %i = add(%x, %k) : f32[2,3]
  %q = mul(%s, %i) : f32[2,3]
  %e = tanh(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%x, %f) : f32[2,3]
  %y = mul(%m, %h) : f32[2,3]
})",
           "gelu", 2e-6, Values::edge},
          {"gelu_from_tanh_half_inside", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.797884583}} : f32[]
  %a = constant() {value = f32[] {0.044715}} : f32[]
  %t = constant() {value = f32[] {3}} : f32[]
  %p = pow(%x, %t) : f32[2,3]
  %k = mul(%a, %p) : f32[2,3]
  %i = add(%x, %k) : f32[2,3]
  %q = mul(%s, %i) : f32[2,3]
  %e = tanh(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%f, %h) : f32[2,3]
  %y = mul(%m, %x) : f32[2,3]
})",
           "gelu", 2e-6, Values::edge},
      },
      {
          {"gelu_from_erf_half_first", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %h = constant() {value = i32[] {2}} : i32[]
  %o = constant() {value = i32[] {1}} : i32[]
  %s = constant() {value = i32[] {3}} : i32[]
  %q = div(%x, %s) : i32[2]
  %e = erf(%q) : i32[2]
  %f = add(%o, %e) : i32[2]
  %m = mul(%h, %x) : i32[2]
  %y = mul(%m, %f) : i32[2]
})"},
          {"gelu_from_erf_half_first", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %h = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %o = constant() {value = f32[1,1] {1}} : f32[1,1]
  %s = constant() {value = f32[1,1] {1.41421354}} : f32[1,1]
  %q = div(%x, %s) : f32[1,3]
  %e = erf(%q) : f32[1,3]
  %f = add(%o, %e) : f32[1,3]
  %m = mul(%h, %x) : f32[1,3]
  %y = mul(%m, %f) : f32[1,3]
})"},
          {"gelu_from_erf_half_first", "the constants are 1/2, 1 and sqrt 2 (or its inverse, as a factor)",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.25}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {1.41421354}} : f32[]
  %q = div(%x, %s) : f32[2,3]
  %e = erf(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%h, %x) : f32[2,3]
  %y = mul(%m, %f) : f32[2,3]
})"},
          {"gelu_from_erf_half_last", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %h = constant() {value = i32[] {2}} : i32[]
  %o = constant() {value = i32[] {1}} : i32[]
  %s = constant() {value = i32[] {3}} : i32[]
  %q = div(%x, %s) : i32[2]
  %e = erf(%q) : i32[2]
  %f = add(%o, %e) : i32[2]
  %m = mul(%x, %f) : i32[2]
  %y = mul(%m, %h) : i32[2]
})"},
          {"gelu_from_erf_half_last", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %h = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %o = constant() {value = f32[1,1] {1}} : f32[1,1]
  %s = constant() {value = f32[1,1] {1.41421354}} : f32[1,1]
  %q = div(%x, %s) : f32[1,3]
  %e = erf(%q) : f32[1,3]
  %f = add(%o, %e) : f32[1,3]
  %m = mul(%x, %f) : f32[1,3]
  %y = mul(%m, %h) : f32[1,3]
})"},
          {"gelu_from_erf_half_last", "the constants are 1/2, 1 and sqrt 2 (or its inverse, as a factor)",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.25}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {1.41421354}} : f32[]
  %q = div(%x, %s) : f32[2,3]
  %e = erf(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%x, %f) : f32[2,3]
  %y = mul(%m, %h) : f32[2,3]
})"},
          {"gelu_from_erf_half_inside", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %h = constant() {value = i32[] {2}} : i32[]
  %o = constant() {value = i32[] {1}} : i32[]
  %s = constant() {value = i32[] {3}} : i32[]
  %q = div(%x, %s) : i32[2]
  %e = erf(%q) : i32[2]
  %f = add(%o, %e) : i32[2]
  %m = mul(%f, %h) : i32[2]
  %y = mul(%m, %x) : i32[2]
})"},
          {"gelu_from_erf_half_inside", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %h = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %o = constant() {value = f32[1,1] {1}} : f32[1,1]
  %s = constant() {value = f32[1,1] {1.41421354}} : f32[1,1]
  %q = div(%x, %s) : f32[1,3]
  %e = erf(%q) : f32[1,3]
  %f = add(%o, %e) : f32[1,3]
  %m = mul(%f, %h) : f32[1,3]
  %y = mul(%m, %x) : f32[1,3]
})"},
          {"gelu_from_erf_half_inside", "the constants are 1/2, 1 and sqrt 2 (or its inverse, as a factor)",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.25}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {1.41421354}} : f32[]
  %q = div(%x, %s) : f32[2,3]
  %e = erf(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%f, %h) : f32[2,3]
  %y = mul(%m, %x) : f32[2,3]
})"},
          {"gelu_from_tanh_half_first", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %h = constant() {value = i32[] {2}} : i32[]
  %o = constant() {value = i32[] {1}} : i32[]
  %s = constant() {value = i32[] {3}} : i32[]
  %a = constant() {value = i32[] {1}} : i32[]
  %t = constant() {value = i32[] {3}} : i32[]
  %p = pow(%x, %t) : i32[2]
  %k = mul(%a, %p) : i32[2]
  %i = add(%x, %k) : i32[2]
  %q = mul(%s, %i) : i32[2]
  %e = tanh(%q) : i32[2]
  %f = add(%o, %e) : i32[2]
  %m = mul(%h, %x) : i32[2]
  %y = mul(%m, %f) : i32[2]
})"},
          {"gelu_from_tanh_half_first", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %h = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %o = constant() {value = f32[1,1] {1}} : f32[1,1]
  %s = constant() {value = f32[1,1] {0.797884583}} : f32[1,1]
  %a = constant() {value = f32[1,1] {0.044715}} : f32[1,1]
  %t = constant() {value = f32[1,1] {3}} : f32[1,1]
  %p = pow(%x, %t) : f32[1,3]
  %k = mul(%a, %p) : f32[1,3]
  %i = add(%x, %k) : f32[1,3]
  %q = mul(%s, %i) : f32[1,3]
  %e = tanh(%q) : f32[1,3]
  %f = add(%o, %e) : f32[1,3]
  %m = mul(%h, %x) : f32[1,3]
  %y = mul(%m, %f) : f32[1,3]
})"},
          {"gelu_from_tanh_half_first", "the constants are 1/2, 1, sqrt(2/pi), 0.044715 and 3",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.25}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.797884583}} : f32[]
  %a = constant() {value = f32[] {0.044715}} : f32[]
  %t = constant() {value = f32[] {3}} : f32[]
  %p = pow(%x, %t) : f32[2,3]
  %k = mul(%a, %p) : f32[2,3]
  %i = add(%x, %k) : f32[2,3]
  %q = mul(%s, %i) : f32[2,3]
  %e = tanh(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%h, %x) : f32[2,3]
  %y = mul(%m, %f) : f32[2,3]
})"},
          {"gelu_from_tanh_half_last", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %h = constant() {value = i32[] {2}} : i32[]
  %o = constant() {value = i32[] {1}} : i32[]
  %s = constant() {value = i32[] {3}} : i32[]
  %a = constant() {value = i32[] {1}} : i32[]
  %t = constant() {value = i32[] {3}} : i32[]
  %p = pow(%x, %t) : i32[2]
  %k = mul(%a, %p) : i32[2]
  %i = add(%x, %k) : i32[2]
  %q = mul(%s, %i) : i32[2]
  %e = tanh(%q) : i32[2]
  %f = add(%o, %e) : i32[2]
  %m = mul(%x, %f) : i32[2]
  %y = mul(%m, %h) : i32[2]
})"},
          {"gelu_from_tanh_half_last", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %h = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %o = constant() {value = f32[1,1] {1}} : f32[1,1]
  %s = constant() {value = f32[1,1] {0.797884583}} : f32[1,1]
  %a = constant() {value = f32[1,1] {0.044715}} : f32[1,1]
  %t = constant() {value = f32[1,1] {3}} : f32[1,1]
  %p = pow(%x, %t) : f32[1,3]
  %k = mul(%a, %p) : f32[1,3]
  %i = add(%x, %k) : f32[1,3]
  %q = mul(%s, %i) : f32[1,3]
  %e = tanh(%q) : f32[1,3]
  %f = add(%o, %e) : f32[1,3]
  %m = mul(%x, %f) : f32[1,3]
  %y = mul(%m, %h) : f32[1,3]
})"},
          {"gelu_from_tanh_half_last", "the constants are 1/2, 1, sqrt(2/pi), 0.044715 and 3",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.25}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.797884583}} : f32[]
  %a = constant() {value = f32[] {0.044715}} : f32[]
  %t = constant() {value = f32[] {3}} : f32[]
  %p = pow(%x, %t) : f32[2,3]
  %k = mul(%a, %p) : f32[2,3]
  %i = add(%x, %k) : f32[2,3]
  %q = mul(%s, %i) : f32[2,3]
  %e = tanh(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%x, %f) : f32[2,3]
  %y = mul(%m, %h) : f32[2,3]
})"},
          {"gelu_from_tanh_half_inside", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %h = constant() {value = i32[] {2}} : i32[]
  %o = constant() {value = i32[] {1}} : i32[]
  %s = constant() {value = i32[] {3}} : i32[]
  %a = constant() {value = i32[] {1}} : i32[]
  %t = constant() {value = i32[] {3}} : i32[]
  %p = pow(%x, %t) : i32[2]
  %k = mul(%a, %p) : i32[2]
  %i = add(%x, %k) : i32[2]
  %q = mul(%s, %i) : i32[2]
  %e = tanh(%q) : i32[2]
  %f = add(%o, %e) : i32[2]
  %m = mul(%f, %h) : i32[2]
  %y = mul(%m, %x) : i32[2]
})"},
          {"gelu_from_tanh_half_inside", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %h = constant() {value = f32[1,1] {0.5}} : f32[1,1]
  %o = constant() {value = f32[1,1] {1}} : f32[1,1]
  %s = constant() {value = f32[1,1] {0.797884583}} : f32[1,1]
  %a = constant() {value = f32[1,1] {0.044715}} : f32[1,1]
  %t = constant() {value = f32[1,1] {3}} : f32[1,1]
  %p = pow(%x, %t) : f32[1,3]
  %k = mul(%a, %p) : f32[1,3]
  %i = add(%x, %k) : f32[1,3]
  %q = mul(%s, %i) : f32[1,3]
  %e = tanh(%q) : f32[1,3]
  %f = add(%o, %e) : f32[1,3]
  %m = mul(%f, %h) : f32[1,3]
  %y = mul(%m, %x) : f32[1,3]
})"},
          {"gelu_from_tanh_half_inside", "the constants are 1/2, 1, sqrt(2/pi), 0.044715 and 3",
           R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.25}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %s = constant() {value = f32[] {0.797884583}} : f32[]
  %a = constant() {value = f32[] {0.044715}} : f32[]
  %t = constant() {value = f32[] {3}} : f32[]
  %p = pow(%x, %t) : f32[2,3]
  %k = mul(%a, %p) : f32[2,3]
  %i = add(%x, %k) : f32[2,3]
  %q = mul(%s, %i) : f32[2,3]
  %e = tanh(%q) : f32[2,3]
  %f = add(%o, %e) : f32[2,3]
  %m = mul(%f, %h) : f32[2,3]
  %y = mul(%m, %x) : f32[2,3]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
