// Trees of two-operand nodes as n-ary layers.
#include "rule_cases.h"

namespace hetnn::passes {

// A norm, its relu and a convolution: the elements' type, the shift and its type, the convolution's window and result.
#define HETNN_NORM(type, shift, shift_type, window, result)                                                        \
  "graph @g {stage = canonical} (%x: " type "[2,3,4,5]) -> (%y) {\n  %s = constant() {value = " type               \
  "[3,1,1] {1.5, -2, 0.25}} : " type "[3,1,1]\n  %t = constant() {value = " shift_type " " shift "} : " shift_type \
  "\n  %w = constant() {value = " type "[2,3,1,1] {1, -2, 0.5, 3, 0.25, -1}} : " type                              \
  "[2,3,1,1]\n  %b = constant() {value = " type "[2] {1, 2}} : " type "[2]\n  %m = mul(%x, %s) : " type            \
  "[2,3,4,5]\n  %a = add(%m, %t) : " type "[2,3,4,5]\n  %r = relu(%a) : " type                                     \
  "[2,3,4,5]\n  %y = conv2d(%r, %w, %b) {padding = [0,0]" window "} : " result "\n}"
// Two convolutions: the elements' type, the first one's window and its result's sizes, the function between, the
// second one's weight and groups and the result.
#define HETNN_BANDS(type, window, sizes, function, weight, groups, result)                                             \
  "graph @g {stage = canonical} (%x: " type "[2,2,5,4]) -> (%y) {\n  %p = constant() {value = " type                   \
  "[3,2,1,1] {1, -2, 0.5, 3, 0.25, -1}} : " type "[3,2,1,1]\n  %a = constant() {value = " type                         \
  "[3] {1, -0.5, 2}} : " type "[3]\n  %d = constant() {value = " type weight " {1, 2, -1, 0.5, 3, -2}} : " type weight \
  "\n  %f = conv2d(%x, %p, %a) {padding = [0,0]" window "} : " type sizes "\n  %r = " function " : " type sizes        \
  "\n  %y = conv2d(%r, %d, _) {padding = [0,1]" groups "} : " type result "\n}"
#define HETNN_EXPANDED(type, function) \
  HETNN_BANDS(type, "", "[2,3,5,4]", function, "[3,1,1,2]", ", groups = 3", "[2,3,5,5]")

const Cases& combining_cases() {
  static const Cases cases = {
      {
          {"sum_as_nary", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[2,3], %c: f32[3]) -> (%y) {
  %t = add(%a, %b) : f32[2,3]
  %y = add(%t, %c) : f32[2,3]
})",
           "nary", 1e-6},
          // A balanced tree, a difference on the right, a negation, multiples, and a quotient.
          {"sum_as_nary",
           R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[4], %e: f32[4]) -> (%y) {
  %k = constant() {value = f32[1] {0.3}} : f32[1]
  %q = constant() {value = f32[1] {3}} : f32[1]
  %n = neg(%a) : f32[4]
  %m = mul(%k, %b) : f32[4]
  %l = add(%n, %m) : f32[4]
  %v = div(%e, %q) : f32[4]
  %s = sub(%c, %d) : f32[4]
  %r = sub(%s, %v) : f32[4]
  %y = sub(%l, %r) : f32[4]
})",
           "nary", 1e-6, Values::edge},
          {"sum_as_nary", R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4]) -> (%y) {
  %t = nary(%a, %b) {coefficients = [0.5, -1.0]} : f32[4]
  %y = sub(%c, %t) : f32[4]
})",
           "nary", 1e-6},
          // A sum that others read, or of another shape, stays an operand; numbers stay steps.
          {"sum_as_nary", R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[1,4]) -> (%t, %y) {
  %one = constant() {value = f32[1] {1}} : f32[1]
  %t = add(%a, %b) : f32[4]
  %u = add(%a, %a) : f32[4]
  %v = add(%c, %one) : f32[1,4]
  %w = add(%v, %t) : f32[1,4]
  %y = add(%w, %u) : f32[1,4]
})",
           "add add add nary", 1e-6},
          // Times 0: what is known to be finite is not read, what may be infinite stays a product.
          {"sum_as_nary", R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4]) -> (%y) {
  %zero = constant() {value = f32[1] {0}} : f32[1]
  %s = clamp(%b) {min = -1, max = 2} : f32[4]
  %m = mul(%s, %zero) : f32[4]
  %n = mul(%c, %zero) : f32[4]
  %t = add(%a, %m) : f32[4]
  %y = add(%t, %n) : f32[4]
})",
           "mul nary", 1e-6, Values::edge},
          {"sum_as_nary", R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4]) -> (%y) {
  %zero = constant() {value = f32[1] {0}} : f32[1]
  %k = constant() {value = f32[1] {2}} : f32[1]
  %s = clamp(%b) {min = -1, max = 2} : f32[4]
  %m = mul(%s, %zero) : f32[4]
  %n = mul(%a, %k) : f32[4]
  %y = sub(%m, %n) : f32[4]
})",
           "nary", 1e-6, Values::edge},
          {"difference_as_nary", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[3]) -> (%y) {
  %y = sub(%a, %b) : f32[2,3]
})",
           "nary"},
          {"difference_as_nary_deterministic", R"(graph @g {stage = canonical} (%a: f32[3], %b: f32[2,3]) -> (%y) {
  %y = sub(%a, %b) : f32[2,3]
})",
           "nary"},
          {"product_as_nary", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[2,3], %c: f32[2,1]) -> (%y) {
  %t = mul(%a, %b) : f32[2,3]
  %y = mul(%c, %t) : f32[2,3]
})",
           "nary", 1e-6, Values::edge},
          {"maximum_as_nary",
           R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[4]) -> (%y) {
  %t = maximum(%a, %b) : f32[4]
  %u = maximum(%c, %d) : f32[4]
  %y = maximum(%t, %u) : f32[4]
})",
           "nary"},
          {"minimum_as_nary", R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4]) -> (%y) {
  %t = minimum(%a, %b) : f32[4]
  %y = minimum(%c, %t) : f32[4]
})",
           "nary"},
          // In order: the tree's right half is rounded by itself and stays a node.
          {"sum_as_nary_deterministic",
           R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[4], %e: f32[4]) -> (%y) {
  %k = constant() {value = f32[1] {0.3}} : f32[1]
  %m = mul(%a, %k) : f32[4]
  %n = mul(%b, %k) : f32[4]
  %l = sub(%m, %n) : f32[4]
  %r = add(%d, %e) : f32[4]
  %s = add(%c, %l) : f32[4]
  %y = sub(%s, %r) : f32[4]
})",
           "add nary"},
          {"product_as_nary_deterministic",
           R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[4]) -> (%y) {
  %l = mul(%a, %b) : f32[4]
  %r = mul(%c, %d) : f32[4]
  %s = mul(%c, %l) : f32[4]
  %y = mul(%s, %r) : f32[4]
})",
           "mul nary"},
          {"maximum_as_nary_deterministic",
           R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4]) -> (%y) {
  %t = maximum(%a, %b) : f32[4]
  %y = maximum(%t, %c) : f32[4]
})",
           "nary"},
          {"minimum_as_nary_deterministic",
           R"(graph @g {stage = canonical} (%a: f32[4], %b: f32[4], %c: f32[4]) -> (%y) {
  %t = minimum(%a, %b) : f32[4]
  %y = minimum(%t, %c) : f32[4]
})",
           "nary"},
          {"sum_of_halves_as_nary",
           R"(graph @g {stage = canonical} (%a: f16[4], %b: f16[4], %c: f16[4], %d: f16[4]) -> (%y) {
  %k = constant() {value = f16[1] "zTQ="} : f16[1]
  %m = mul(%b, %k) : f16[4]
  %s = add(%a, %m) : f16[4]
  %t = sub(%s, %c) : f16[4]
  %y = add(%d, %t) : f16[4]
})",
           "nary"},
          // The right half of a tree is rounded by itself, as a layer of its own.
          {"sum_of_halves_as_nary",
           R"(graph @g {stage = canonical} (%a: bf16[4], %b: bf16[4], %c: bf16[4], %d: bf16[4]) -> (%y) {
  %l = add(%a, %b) : bf16[4]
  %r = add(%c, %d) : bf16[4]
  %y = add(%l, %r) : bf16[4]
})",
           "nary nary"},
          // A number of f32 times halves is rounded once, as a term is; the sum of another f32 is no term.
          {"sum_of_halves_as_nary",
           R"(graph @g {stage = canonical} (%a: bf16[4], %b: bf16[4]) -> (%y) {
  %k = constant() {value = f32[] {0.3}} : f32[]
  %w = cast(%b) {to = f32} : f32[4]
  %m = mul(%w, %k) : f32[4]
  %h = cast(%m) {to = bf16} : bf16[4]
  %y = sub(%a, %h) : bf16[4]
})",
           "nary"},
          {"sum_of_halves_as_nary",
           R"(graph @g {stage = canonical} (%a: bf16[4], %b: bf16[4]) -> (%y) {
  %k = constant() {value = f32[] {0.3}} : f32[]
  %w = cast(%b) {to = f32} : f32[4]
  %m = add(%w, %k) : f32[4]
  %h = cast(%m) {to = bf16} : bf16[4]
  %y = sub(%a, %h) : bf16[4]
})",
           "cast add cast nary"},
          // Bytes wrap in any order; what is taken away stays a node.
          {"sum_of_bytes_as_nary",
           R"(graph @g {stage = canonical} (%a: i8[4], %b: i8[4], %c: i8[4], %d: i8[4]) -> (%y) {
  %l = add(%a, %b) : i8[4]
  %r = sub(%c, %d) : i8[4]
  %t = add(%l, %r) : i8[4]
  %y = add(%d, %t) : i8[4]
})",
           "sub nary"},
          {"gate_into_convolution", R"(graph @g {stage = canonical} (%x: f32[2,3,4,5], %gate: f32[2,3,1,1]) -> (%y) {
  %w = constant() {value = f32[2,3,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[2,3,1,1]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %m = mul(%gate, %x) : f32[2,3,4,5]
  %y = conv2d(%m, %w, %b) {padding = [0,0]} : f32[2,2,4,5]
})",
           "scaled_conv2d", 1e-6, Values::edge},
          {"norm_into_convolution", R"(graph @g {stage = canonical} (%x: f32[2,3,4,5]) -> (%y) {
  %s = constant() {value = f32[3,1,1] {1.5, -2, 0.25}} : f32[3,1,1]
  %t = constant() {value = f32[3,1,1] {0.5, 1, -1}} : f32[3,1,1]
  %w = constant() {value = f32[2,3,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[2,3,1,1]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %m = mul(%x, %s) : f32[2,3,4,5]
  %a = add(%m, %t) : f32[2,3,4,5]
  %r = relu(%a) : f32[2,3,4,5]
  %y = conv2d(%r, %w, %b) {padding = [0,0]} : f32[2,2,4,5]
})",
           "scaled_conv2d", 1e-6, Values::edge},
          {"convolutions_in_bands", R"(graph @g {stage = canonical} (%x: f32[2,2,5,4]) -> (%y) {
  %p = constant() {value = f32[3,2,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[3,2,1,1]
  %a = constant() {value = f32[3] {1, -0.5, 2}} : f32[3]
  %d = constant() {value = f32[3,1,1,2] {1, 2, -1, 0.5, 3, -2}} : f32[3,1,1,2]
  %f = conv2d(%x, %p, %a) {padding = [0,0]} : f32[2,3,5,4]
  %r = relu(%f) : f32[2,3,5,4]
  %y = conv2d(%r, %d, _) {padding = [0,1], groups = 3} : f32[2,3,5,5]
})",
           "pointwise_depthwise_conv2d", 1e-6, Values::edge},
          {"convolutions_in_bands", R"(graph @g {stage = canonical} (%x: f32[2,2,5,4]) -> (%y) {
  %p = constant() {value = f32[3,2,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[3,2,1,1]
  %a = constant() {value = f32[3] {1, -0.5, 2}} : f32[3]
  %d = constant() {value = f32[3,1,1,2] {1, 2, -1, 0.5, 3, -2}} : f32[3,1,1,2]
  %f = conv2d(%x, %p, %a) {padding = [0,0]} : f32[2,3,5,4]
  %r = clamp(%f) {min = 0, max = 6} : f32[2,3,5,4]
  %y = conv2d(%r, %d, _) {padding = [0,1], groups = 3} : f32[2,3,5,5]
})",
           "pointwise_depthwise_conv2d", 1e-6, Values::edge},
          {"convolutions_in_bands", HETNN_EXPANDED("f32", "silu(%f)"), "pointwise_depthwise_conv2d", 1e-6,
           Values::edge},
          {"convolutions_in_bands", HETNN_EXPANDED("f32", "hardswish(%f)"), "pointwise_depthwise_conv2d", 1e-6,
           Values::edge},
          {"products_as_attention",
           R"(graph @g {stage = canonical} (%q: f32[3,5,4], %k: f32[3,6,4], %v: f32[3,6,2]) -> (%y) {
  %t = permute(%k) {perm = [0,2,1]} : f32[3,4,6]
  %s = matmul(%q, %t) : f32[3,5,6]
  %p = softmax(%s) {axis = -1} : f32[3,5,6]
  %y = matmul(%p, %v) : f32[3,5,2]
})",
           "reshape reshape reshape scaled_dot_product_attention reshape", 1e-5},
          // As torch.onnx writes it: both sides scaled, a mask, rows that are NaN as zeros.
          {"products_as_attention",
           R"(graph @g {stage = canonical} (%q: f32[1,2,5,4], %k: f32[1,2,6,4], %v: f32[1,2,6,3], %m: f32[1,1,5,6]) -> (%y) {
  %c = constant() {value = f32[1] {0.75}} : f32[1]
  %zero = constant() {value = f32[1] {0}} : f32[1]
  %f = reshape(%k) {shape = [2,6,4]} : f32[2,6,4]
  %t = permute(%f) {perm = [0,2,1]} : f32[2,4,6]
  %u = reshape(%t) {shape = [1,2,4,6]} : f32[1,2,4,6]
  %a = mul(%q, %c) : f32[1,2,5,4]
  %b = mul(%u, %c) : f32[1,2,4,6]
  %s = matmul(%a, %b) : f32[1,2,5,6]
  %d = add(%m, %s) : f32[1,2,5,6]
  %p = softmax(%d) {axis = 3} : f32[1,2,5,6]
  %n = ne(%p, %p) : bool[1,2,5,6]
  %w = where(%n, %zero, %p) : f32[1,2,5,6]
  %y = matmul(%w, %v) : f32[1,2,5,3]
})",
           "reshape reshape scaled_dot_product_attention", 1e-5},
      },
      {
          {"products_as_attention", "the values are f32",
           R"(graph @g {stage = canonical} (%q: f64[5,4], %k: f64[4,6]) -> (%y) {
  %y = matmul(%q, %k) : f64[5,6]
})"},
          {"gate_into_convolution", "the values are f32",
           R"(graph @g {stage = canonical} (%x: i32[2,3,4,5], %gate: i32[2,3,1,1]) -> (%y) {
  %w = constant() {value = i32[2,3,1,1] {1, -2, 5, 3, 2, -1}} : i32[2,3,1,1]
  %b = constant() {value = i32[2] {1, 2}} : i32[2]
  %m = mul(%gate, %x) : i32[2,3,4,5]
  %y = conv2d(%m, %w, %b) {padding = [0,0]} : i32[2,2,4,5]
})"},
          {"gate_into_convolution", "the convolution is 1x1, stride 1, without padding and groups",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,5], %gate: f32[2,3,1,1]) -> (%y) {
  %w = constant() {value = f32[2,3,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[2,3,1,1]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %m = mul(%gate, %x) : f32[2,3,4,5]
  %y = conv2d(%m, %w, %b) {padding = [0,0], stride = [2,2]} : f32[2,2,2,3]
})"},
          {"gate_into_convolution", "one of p and q is a gate: a factor for each image and channel of the other",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,5], %gate: f32[1,3,1,1]) -> (%y) {
  %w = constant() {value = f32[2,3,1,1] {1, -2, 0.5, 3, 0.25, -1}} : f32[2,3,1,1]
  %b = constant() {value = f32[2] {1, 2}} : f32[2]
  %m = mul(%gate, %x) : f32[2,3,4,5]
  %y = conv2d(%m, %w, %b) {padding = [0,0]} : f32[2,2,4,5]
})"},
          {"norm_into_convolution", "the values are f32",
           HETNN_NORM("f64", "{0.5, 1, -1}", "f64[3,1,1]", "", "f64[2,2,4,5]")},
          {"norm_into_convolution", "the convolution is 1x1, stride 1, without padding and groups",
           HETNN_NORM("f32", "{0.5, 1, -1}", "f32[3,1,1]", ", stride = [2,2]", "f32[2,2,2,3]")},
          {"norm_into_convolution", "s and t vary along the channels only",
           HETNN_NORM("f32", "{0.5, 1, -1, 2, 0}", "f32[5]", "", "f32[2,2,4,5]")},
          {"convolutions_in_bands", "the values are f32", HETNN_EXPANDED("f64", "relu(%f)")},
          {"convolutions_in_bands", "the first convolution is 1x1, stride 1, without padding and groups",
           HETNN_BANDS("f32", ", stride = [2,2]", "[2,3,3,2]", "relu(%f)", "[3,1,1,2]", ", groups = 3", "[2,3,3,3]")},
          {"convolutions_in_bands", "the second one is of a channel each",
           HETNN_BANDS("f32", "", "[2,3,5,4]", "relu(%f)", "[1,3,1,2]", "", "[2,1,5,5]")},
#define HETNN_INTEGERS(rule, op)                                       \
  {rule, "the values are f32",                                         \
   "graph @g {stage = canonical} (%a: i32[4], %b: i32[4]) -> (%y) {\n" \
   "  %t = " op                                                        \
   "(%a, %b) : i32[4]\n"                                               \
   "  %y = " op "(%t, %b) : i32[4]\n}"}
          HETNN_INTEGERS("sum_as_nary", "add"),
          {"sum_of_halves_as_nary", "the values are f16 or bf16",
           "graph @g {stage = canonical} (%a: f32[4], %b: f32[4]) -> (%y) {\n  %t = add(%a, %b) : f32[4]\n"
           "  %y = add(%t, %b) : f32[4]\n}"},
          {"sum_of_bytes_as_nary", "the values are i8, without a scale",
           "graph @g {stage = canonical} (%a: i16[4], %b: i16[4]) -> (%y) {\n  %t = add(%a, %b) : i16[4]\n"
           "  %y = add(%t, %b) : i16[4]\n}"},
          HETNN_INTEGERS("difference_as_nary", "sub"),
          HETNN_INTEGERS("difference_as_nary_deterministic", "sub"),
          HETNN_INTEGERS("product_as_nary", "mul"),
          HETNN_INTEGERS("maximum_as_nary", "maximum"),
          HETNN_INTEGERS("minimum_as_nary", "minimum"),
          HETNN_INTEGERS("sum_as_nary_deterministic", "add"),
          HETNN_INTEGERS("product_as_nary_deterministic", "mul"),
          HETNN_INTEGERS("maximum_as_nary_deterministic", "maximum"),
          HETNN_INTEGERS("minimum_as_nary_deterministic", "minimum"),
#undef HETNN_INTEGERS
      }};
  return cases;
}

}  // namespace hetnn::passes
