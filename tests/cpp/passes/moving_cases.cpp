// Movements that are fewer where values lie in one another's memory.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& moving_cases() {
  static const Cases cases = {
      {
          {"turned_as_linear", R"(graph @g {stage = canonical} (%x: f32[2,3,4], %w: f32[5,4]) -> (%y) {
  %t = permute(%w) {perm = [1,0]} : f32[4,5]
  %y = matmul(%x, %t) : f32[2,3,5]
})",
           "linear", 1e-6, Values::random},
          {"shuffle_as_gather", R"(graph @g {stage = canonical} (%x: f32[1,6,2,3]) -> (%y) {
  %s = reshape(%x) {shape = [2,3,6]} : f32[2,3,6]
  %t = permute(%s) {perm = [1,0,2]} : f32[3,2,6]
  %y = reshape(%t) {shape = [1,6,2,3]} : f32[1,6,2,3]
})",
           "gather"},
          {"shuffle_as_gather", R"(graph @g {stage = canonical, symbols = [n: 1..4 = 2]} (%x: f32[n,24,2,3]) -> (%y) {
  %s = reshape(%x) {shape = [n,2,3,4,2,3]} : f32[n,2,3,4,2,3]
  %t = permute(%s) {perm = [0,3,1,2,4,5]} : f32[n,4,2,3,2,3]
  %y = reshape(%t) {shape = [n,24,2,3]} : f32[n,24,2,3]
})",
           "gather"},
          {"slice_of_gather", R"(graph @g {stage = canonical} (%x: f32[2,4,3]) -> (%y, %z) {
  %i = constant() {value = i64[5] {3, 1, 0, 2, 3}} : i64[5]
  %s = gather(%x, %i) {axis = 1} : f32[2,5,3]
  %y = slice(%s) {axis = 1, end = 2} : f32[2,2,3]
  %z = slice(%s) {axis = -2, start = -3} : f32[2,3,3]
})",
           "gather gather"},
          {"concat_of_joined",
           R"(graph @g {stage = canonical} (%a: f32[2,1,3], %b: f32[2,2,3], %c: f32[2,3,3]) -> (%p, %q, %y) {
  %p = concat(%a, %b) {axis = 1} : f32[2,3,3]
  %q = concat(%a, %b, %c) {axis = 1} : f32[2,6,3]
  %y = concat(%a, %b, %c, %b) {axis = 1} : f32[2,8,3]
})",
           "concat concat concat"},
          {"sum_of_turned", R"(graph @g {stage = canonical} (%y: f32[2,5,6,3], %z: f32[2,3,5,6]) -> (%r) {
  %t = permute(%y) {perm = [0,3,1,2]} : f32[2,3,5,6]
  %s = add(%z, %t) : f32[2,3,5,6]
  %r = permute(%s) {perm = [0,2,3,1]} : f32[2,5,6,3]
})",
           "permute add permute permute"},
          // The other operand is turned, too.
          {"sum_of_turned", R"(graph @g {stage = canonical} (%y: f32[2,5,6,3], %v: f32[2,5,6,3]) -> (%z, %r) {
  %t = permute(%y) {perm = [0,3,1,2]} : f32[2,3,5,6]
  %z = permute(%v) {perm = [0,3,1,2]} : f32[2,3,5,6]
  %s = add(%t, %z) : f32[2,3,5,6]
  %r = permute(%s) {perm = [0,2,3,1]} : f32[2,5,6,3]
})",
           "permute add permute permute"},
          {"convolutions_as_one", R"(graph @g {stage = canonical} (%x: f32[2,3,4,5]) -> (%y, %z) {
  %w = constant() {value = f32[2,3,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[2,3,1,1]
  %v = constant() {value = f32[1,3,1,1] {4, 2, -0.5}} : f32[1,3,1,1]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = constant() {value = f32[1] {-3}} : f32[1]
  %y = conv2d(%x, %w, %b) {stride = [2,2]} : f32[2,2,2,3]
  %z = conv2d(%x, %v, %c) {stride = [2,2]} : f32[2,1,2,3]
})",
           "conv2d slice slice"},
      },
      {
          {"turned_as_linear", "w is a matrix of f32, no constant, whose axes the permutation turns",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4], %w: f32[2,5,4]) -> (%y) {
  %t = permute(%w) {perm = [0,2,1]} : f32[2,4,5]
  %y = matmul(%x, %t) : f32[2,3,5]
})"},
          {"shuffle_as_gather", "the channels alone change places, and their number is fixed",
           R"(graph @g {stage = canonical} (%x: f32[1,6,2,3]) -> (%y) {
  %s = reshape(%x) {shape = [2,3,2,3]} : f32[2,3,2,3]
  %t = permute(%s) {perm = [1,0,3,2]} : f32[3,2,3,2]
  %y = reshape(%t) {shape = [1,6,2,3]} : f32[1,6,2,3]
})"},
          {"convolutions_as_one", "the values are f32",
           R"(graph @g {stage = canonical} (%x: f64[1,2,3,3]) -> (%y, %z) {
  %w = constant() {value = f64[1,2,1,1] {1, -2}} : f64[1,2,1,1]
  %y = conv2d(%x, %w, _) : f64[1,1,3,3]
  %z = conv2d(%x, %w, _) : f64[1,1,3,3]
})"},
          {"convolutions_as_one", "the convolution is 1x1, of constants, and nothing elementwise reads it",
           R"(graph @g {stage = canonical} (%x: f32[1,2,3,3]) -> (%y, %z) {
  %w = constant() {value = f32[1,2,1,1] {1, -2}} : f32[1,2,1,1]
  %y = conv2d(%x, %w, _) : f32[1,1,3,3]
  %c = conv2d(%x, %w, _) : f32[1,1,3,3]
  %z = relu(%c) : f32[1,1,3,3]
})"},
          {"convolutions_as_one",
           "another one like it reads x, and the two fill fewer vectors of 16 channels than each by itself",
           R"(graph @g {stage = canonical} (%x: f32[1,2,3,3]) -> (%y, %z) {
  %w = constant() {value = f32[1,2,1,1] {1, -2}} : f32[1,2,1,1]
  %b = constant() {value = f32[1] {1}} : f32[1]
  %y = conv2d(%x, %w, _) : f32[1,1,3,3]
  %z = conv2d(%x, %w, %b) : f32[1,1,3,3]
})"},
          {"slice_of_gather", "i are channels", R"(graph @g {stage = canonical} (%x: f32[2,4,3]) -> (%y) {
  %i = constant() {value = i64[2] {2, 1}} : i64[2]
  %s = gather(%x, %i) {axis = 2} : f32[2,4,2]
  %y = slice(%s) {axis = 1, end = 2} : f32[2,2,2]
})"},
          {"slice_of_gather", "whoever reads them reads fixed ranges of channels",
           R"(graph @g {stage = canonical} (%x: f32[2,4,3]) -> (%y, %z) {
  %i = constant() {value = i64[3] {3, 1, 0}} : i64[3]
  %s = gather(%x, %i) {axis = 1} : f32[2,3,3]
  %y = slice(%s) {axis = 1, end = 2} : f32[2,2,3]
  %z = relu(%s) : f32[2,3,3]
})"},
          {"concat_of_joined", "another node joins the first inputs",
           R"(graph @g {stage = canonical} (%a: f32[2,1,3], %b: f32[2,2,3], %c: f32[2,3,3]) -> (%p, %q, %y) {
  %p = concat(%a, %c) {axis = 1} : f32[2,4,3]
  %q = concat(%b, %c) {axis = 1} : f32[2,5,3]
  %y = concat(%a, %b, %c) {axis = 1} : f32[2,6,3]
})"},
          {"sum_of_turned", "y has its channels last, and z is of the type of the sum",
           R"(graph @g {stage = canonical} (%y: f32[2,5,3,6], %z: f32[2,3,5,6]) -> (%r) {
  %t = permute(%y) {perm = [0,2,1,3]} : f32[2,3,5,6]
  %s = add(%z, %t) : f32[2,3,5,6]
  %r = permute(%s) {perm = [0,2,3,1]} : f32[2,5,6,3]
})"},
          {"sum_of_turned", "a convolution or a movement reads the sum with its channels last",
           R"(graph @g {stage = canonical} (%y: f32[2,5,6,3], %z: f32[2,3,5,6]) -> (%r) {
  %t = permute(%y) {perm = [0,3,1,2]} : f32[2,3,5,6]
  %s = add(%z, %t) : f32[2,3,5,6]
  %r = relu(%s) : f32[2,3,5,6]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
