// Conversions around layers, as quantizers write them, and the types that they become.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& conversion_cases() {
  constexpr std::string_view kFollows = "y is f's, and nothing else reads it";
  constexpr std::string_view kMatrix = "w is a matrix, and x has two axes or more";
  static const Cases cases = {
      {
          {"bits_toggled_twice", R"(graph @g {stage = canonical} (%x: u8[4]) -> (%y) {
  %c = constant() {value = u8[] {128}} : u8[]
  %a = bitwise_xor(%x, %c) : u8[4]
  %y = bitwise_xor(%a, %c) : u8[4]
})",
           "", 0, Values::random},
          {"bitcast_twice", R"(graph @g {stage = canonical} (%x: i32[3]) -> (%y) {
  %a = bitcast(%x) {to = u32} : u32[3]
  %y = bitcast(%a) {to = i32} : i32[3]
})",
           "bitcast", 0, Values::random},
          {"bitcast_to_own_type", R"(graph @g {stage = canonical} (%x: i8[3]) -> (%y) {
  %y = bitcast(%x) {to = i8} : i8[3]
})",
           "", 0, Values::random},
          {"quantize_from_arithmetic", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %s = constant() {value = f32[] {0.5}} : f32[]
  %z = constant() {value = f32[] {3}} : f32[]
  %d = div(%x, %s) : f32[2,3]
  %r = round(%d) : f32[2,3]
  %a = add(%r, %z) : f32[2,3]
  %c = clamp(%a) {min = -128, max = 127} : f32[2,3]
  %q = cast(%c) {to = i8} : i8[2,3]
  %y = bitcast(%q) {to = i8, q_scale = [0.5], q_zero = 3} : i8{0.5:3}[2,3]
})",
           "quantize", 0, Values::random},
          {"quantize_from_arithmetic", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %s = constant() {value = f32[] {0.5}} : f32[]
  %z = constant() {value = f32[] {131}} : f32[]
  %t = constant() {value = u8[] {128}} : u8[]
  %d = div(%x, %s) : f32[2,3]
  %r = round(%d) : f32[2,3]
  %a = add(%r, %z) : f32[2,3]
  %c = clamp(%a) {min = 0, max = 255} : f32[2,3]
  %q = cast(%c) {to = u8} : u8[2,3]
  %u = bitwise_xor(%q, %t) : u8[2,3]
  %y = bitcast(%u) {to = i8, q_scale = [0.5], q_zero = 3} : i8{0.5:3}[2,3]
})",
           "quantize", 0, Values::random},
          {"quantize_of_dequantize", R"(graph @g {stage = canonical} (%x: i8{0.1:3}[2,3]) -> (%y) {
  %d = dequantize(%x) : f32[2,3]
  %y = quantize(%d) {q_scale = [0.05], q_zero = -7} : i8{0.05:-7}[2,3]
})",
           "identity", 0, Values::random},
          {"quantize_before_bounds", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %r = clamp(%x) {min = -0.33, max = 0.77} : f32[2,3]
  %y = quantize(%r) {q_scale = [0.1], q_zero = 2} : i8{0.1:2}[2,3]
})",
           "quantize clamp", 0, Values::random},
          {"quantize_before_movement", R"(graph @g {stage = canonical} (%x: f32[1,2,4,4]) -> (%y) {
  %r = max_pool2d(%x) {kernel = [2,2]} : f32[1,2,2,2]
  %y = quantize(%r) {q_scale = [0.1]} : i8{0.1}[1,2,2,2]
})",
           "quantize max_pool2d", 0, Values::random},
          {"layer_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,3]) -> (%y) {
  %w = constant() {value = i8[2,2,1,1] {1, -2, 3, 4}, q_scale = [0.02]} : i8{0.02}[2,2,1,1]
  %d = dequantize(%x) : f32[1,2,3,3]
  %v = dequantize(%w) : f32[2,2,1,1]
  %c = conv2d(%d, %v) : f32[1,2,3,3]
  %y = quantize(%c) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[1,2,3,3]
})",
           "conv2d", 0, Values::random},
          {"layer_of_integers", R"(graph @g {stage = imported} (%x: i8{0.1:1}[2,4]) -> (%y) {
  %w = constant() {value = i8[4] {1, -2, 3, 4}, q_scale = [0.25]} : i8{0.25}[4]
  %b = constant() {value = f32[4] {0.5, 1, -2, 0}} : f32[4]
  %d = dequantize(%x) : f32[2,4]
  %v = dequantize(%w) : f32[4]
  %n = layer_norm(%d, %v, %b) : f32[2,4]
  %y = quantize(%n) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[2,4]
})",
           "dequantize layer_norm", 0, Values::random},
          {"layer_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,4]) -> (%y) {
  %c = constant() {value = f32[] {3}} : f32[]
  %d = dequantize(%x) : f32[2,4]
  %p = pow(%d, %c) : f32[2,4]
  %y = quantize(%p) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[2,4]
})",
           "pow", 0, Values::random},
          {"layer_of_integers", R"(graph @g {stage = canonical} (%x: i16{0.1}[2,4]) -> (%y) {
  %c = constant() {value = f32[1,1] {-0.7}} : f32[1,1]
  %d = dequantize(%x) : f32[2,4]
  %p = sub(%c, %d) : f32[2,4]
  %y = quantize(%p) {to = i16, q_scale = [0.1]} : i16{0.1}[2,4]
})",
           "sub", 0, Values::random},
          {"layer_of_real_sums", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,3]) -> (%y) {
  %w = constant() {value = i8[2,2,1,1] {1, -2, 3, 4}, q_scale = [0.02,0.01]} : i8{0.02,0.01}[2,2,1,1]
  %b = constant() {value = i32[2] {70, -900}, q_scale = [0.002,0.001]} : i32{0.002,0.001}[2]
  %d = dequantize(%x) : f32[1,2,3,3]
  %v = dequantize(%w) : f32[2,2,1,1]
  %r = dequantize(%b) : f32[2]
  %y = conv2d(%d, %v, %r) : f32[1,2,3,3]
})",
           "conv2d", 1e-6, Values::random},
          {"layer_of_real_sums", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[3,4]) -> (%y) {
  %w = constant() {value = i8[2,4] {1, -2, 3, 4, 5, -128, 127, 7}, q_scale = [0.02]} : i8{0.02}[2,4]
  %b = constant() {value = f32[2] {0.3, -0.7}} : f32[2]
  %d = dequantize(%x) : f32[3,4]
  %v = dequantize(%w) : f32[2,4]
  %l = linear(%d, %v, %b) : f32[3,2]
  %y = silu(%l) : f32[3,2]
})",
           "linear silu", 1e-6, Values::random},
          {"slopes_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,3]) -> (%y) {
  %w = constant() {value = i8[2,2,1,1] {1, -2, 3, 4}, q_scale = [0.02,0.01]} : i8{0.02,0.01}[2,2,1,1]
  %b = constant() {value = i32[2] {70, -900}, q_scale = [0.002,0.001]} : i32{0.002,0.001}[2]
  %a = constant() {value = f32[2] {0.25, 3}} : f32[2]
  %d = dequantize(%x) : f32[1,2,3,3]
  %v = dequantize(%w) : f32[2,2,1,1]
  %r = dequantize(%b) : f32[2]
  %c = conv2d(%d, %v, %r) : f32[1,2,3,3]
  %p = prelu(%c, %a) : f32[1,2,3,3]
  %y = quantize(%p) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[1,2,3,3]
})",
           "conv2d conv2d add", 0, Values::random},
          {"slopes_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,5,2]) -> (%y) {
  %w = constant() {value = i8[2,2] {100, -25, 13, 64}, q_scale = [0.02]} : i8{0.02}[2,2]
  %d = dequantize(%x) : f32[2,5,2]
  %v = dequantize(%w) : f32[2,2]
  %c = linear(%d, %v) : f32[2,5,2]
  %p = leaky_relu(%c) {negative_slope = 0.1} : f32[2,5,2]
  %y = quantize(%p) {q_scale = [0.0817], q_zero = -70} : i8{0.0817:-70}[2,5,2]
})",
           "linear linear add", 0, Values::random},
          {"movement_before_dequantize", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,4]) -> (%y) {
  %d = dequantize(%x) : f32[2,4]
  %y = permute(%d) {perm = [1,0]} : f32[4,2]
})",
           "permute dequantize", 0, Values::random},
          {"movement_before_dequantize", R"(graph @g {stage = imported} (%x: f32[1,2,1,5]) -> (%y) {
  %w = constant() {value = i8[2,2,3] {1, -2, 3, 4, 5, 6, 7, 8, -9, 10, 11, 12}, q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,2,3]
  %d = dequantize(%w) : f32[2,2,3]
  %r = reshape(%d) {shape = [2,2,1,3]} : f32[2,2,1,3]
  %y = conv2d(%x, %r) : f32[1,2,1,3]
})",
           "dequantize conv2d", 0, Values::random},
          {"integers_are_no_nan", R"(graph @g {stage = canonical} (%q: i8{0.1:1}[2,4]) -> (%y) {
  %c = constant() {value = f32[] {0}} : f32[]
  %x = dequantize(%q) : f32[2,4]
  %n = ne(%x, %x) : bool[2,4]
  %y = where(%n, %c, %x) : f32[2,4]
})",
           "dequantize", 0, Values::random},
          {"function_before_movement", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,4]) -> (%y) {
  %p = permute(%x) {perm = [1,0]} : i8{0.1:1}[4,2]
  %y = erf(%p) {q_scale = [0.01]} : i8{0.01}[4,2]
})",
           "erf permute", 0, Values::random},
          {"function_before_movement", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[8]) -> (%y) {
  %c = constant() {value = i8[1,1] {5}, q_scale = [0.5]} : i8{0.5}[1,1]
  %p = reshape(%x) {shape = [2,4]} : i8{0.1:1}[2,4]
  %y = add(%p, %c) {q_scale = [0.2]} : i8{0.2}[2,4]
})",
           "add reshape", 0, Values::random},
          {"functions_as_table", R"(graph @g {stage = canonical} (%x: i8{0.05:1}[2,4]) -> (%y) {
  %c = constant() {value = i8[] {100}, q_scale = [0.01]} : i8{0.01}[]
  %e = erf(%x) {q_scale = [0.01]} : i8{0.01}[2,4]
  %s = add(%e, %c) {q_scale = [0.02], q_zero = -128} : i8{0.02:-128}[2,4]
  %y = mul(%s, %x) {q_scale = [0.05]} : i8{0.05}[2,4]
})",
           "lookup", 0, Values::random},
          {"mean_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,3,3]
  %m = mean(%d) {axes = [-1,-2]} : f32[1,2]
  %y = quantize(%m) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[1,2]
})",
           "adaptive_avg_pool2d reshape", 0, Values::random},
          {"bilinear_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,3,4,5]) -> (%y) {
  %d = dequantize(%x) : f32[2,3,4,5]
  %m = upsample_bilinear2d(%d) {size = [8,20]} : f32[2,3,8,20]
  %y = quantize(%m) {q_scale = [0.0713], q_zero = -5} : i8{0.0713:-5}[2,3,8,20]
})",
           "slice slice concat slice slice concat conv_transpose2d", 0, Values::random},
          {"bilinear_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,1,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,1,3]
  %m = upsample_bilinear2d(%d) {size = [1,6], scales = [1.0,2.0]} : f32[1,2,1,6]
  %y = quantize(%m) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[1,2,1,6]
})",
           "slice slice concat conv_transpose2d", 0, Values::random},
          {"bilinear_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,2,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,2,3]
  %m = upsample_bilinear2d(%d) {size = [6,15]} : f32[1,2,6,15]
  %y = quantize(%m) {q_scale = [0.0713], q_zero = -5} : i8{0.0713:-5}[1,2,6,15]
})",
           "slice slice concat slice slice concat conv_transpose2d", 0, Values::random},
          {"bilinear_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,4,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,4,3]
  %m = upsample_bilinear2d(%d) {size = [25,13], align_corners = true} : f32[1,2,25,13]
  %y = quantize(%m) {q_scale = [0.0713], q_zero = -5} : i8{0.0713:-5}[1,2,25,13]
})",
           "conv_transpose2d", 0, Values::random},
          {"bilinear_of_integers", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,4,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,4,3]
  %m = upsample_bilinear2d(%d) {size = [4,9], align_corners = true} : f32[1,2,4,9]
  %y = quantize(%m) {q_scale = [0.0713], q_zero = -5} : i8{0.0713:-5}[1,2,4,9]
})",
           "conv_transpose2d", 0, Values::random},
          {"transposed_integers_as_phases", R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,2]) -> (%y) {
  %w = constant() {value = i8[2,2,3,1] {1, -2, 3, 4, 5, -6, 7, 8, -9, 10, 11, -12}, q_scale = [0.25, 0.5], q_axis = 1} : i8{0.25,0.5@1}[2,2,3,1]
  %b = constant() {value = i32[2] {40, -30}, q_scale = [0.025, 0.05]} : i32{0.025,0.05}[2]
  %y = conv_transpose2d(%x, %w, %b) {stride = [2,1], padding = [1,0], q_scale = [0.3], q_zero = -5} : i8{0.3:-5}[1,2,5,2]
})",
           "conv2d reshape permute reshape slice", 0, Values::random},
          {"linear_of_integers_turned", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, -2, 3, 4, 5, -6}, q_scale = [0.25]} : i8{0.25}[2,3]
  %d = dequantize(%w) : f32[2,3]
  %p = permute(%d) {perm = [1,0]} : f32[3,2]
  %y = matmul(%x, %p) : f32[2,2]
})",
           "dequantize linear", 1e-6, Values::random},
          {"linear_of_integers", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %w = constant() {value = i8[3,2] {1, -2, 3, 4, 5, -6}, q_scale = [0.25]} : i8{0.25}[3,2]
  %d = dequantize(%w) : f32[3,2]
  %y = matmul(%x, %d) : f32[2,2]
})",
           "permute dequantize linear", 1e-6, Values::random},
          {"linear_of_integers", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %w = constant() {value = i8[3,2] {1, -2, 3, 4, 5, -6}, q_scale = [0.25,0.5], q_axis = 1} : i8{0.25,0.5@1}[3,2]
  %d = dequantize(%w) : f32[3,2]
  %y = matmul(%x, %d) : f32[2,2]
})",
           "permute dequantize linear", 1e-6, Values::random},
          {"bias_of_integers", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, -2, 3, 4, 5, -6}, q_scale = [0.25]} : i8{0.25}[2,3]
  %b = constant() {value = f32[2] {0.5, -1.5}} : f32[2]
  %d = dequantize(%w) : f32[2,3]
  %l = linear(%x, %d) : f32[2,2]
  %y = add(%l, %b) : f32[2,2]
})",
           "dequantize linear", 1e-6, Values::random},
      },
      {
          {"bits_toggled_twice", "the result has the type of x",
           R"(graph @g {stage = canonical} (%x: u8[1]) -> (%y) {
  %c = constant() {value = u8[2] {1, 1}} : u8[2]
  %a = bitwise_xor(%x, %c) : u8[2]
  %y = bitwise_xor(%a, %c) : u8[2]
})"},
          {"bits_toggled_twice", "c and d are one number", R"(graph @g {stage = canonical} (%x: u8[4]) -> (%y) {
  %c = constant() {value = u8[] {128}} : u8[]
  %d = constant() {value = u8[] {64}} : u8[]
  %a = bitwise_xor(%x, %c) : u8[4]
  %y = bitwise_xor(%a, %d) : u8[4]
})"},
          {"bitcast_twice", "no type is bool, of which bits are lost",
           R"(graph @g {stage = canonical} (%x: u8[3]) -> (%y) {
  %a = bitcast(%x) {to = bool} : bool[3]
  %y = bitcast(%a) {to = i8} : i8[3]
})"},
          {"bitcast_to_own_type", "the result has the type of x", R"(graph @g {stage = canonical} (%x: i8[3]) -> (%y) {
  %y = bitcast(%x) {to = u8} : u8[3]
})"},
          {"quantize_from_arithmetic",
           "scale and zero point are the result's; with a product y is what a layer computes",
           R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %s = constant() {value = f32[] {2}} : f32[]
  %d = mul(%x, %s) : f32[2,3]
  %r = round(%d) : f32[2,3]
  %c = clamp(%r) {min = -128, max = 127} : f32[2,3]
  %q = cast(%c) {to = i8} : i8[2,3]
  %y = bitcast(%q) {to = i8, q_scale = [0.5]} : i8{0.5}[2,3]
})"},
          {"quantize_of_dequantize", "x is of the result's element type",
           R"(graph @g {stage = canonical} (%x: i32{0.1}[3]) -> (%y) {
  %d = dequantize(%x) : f32[3]
  %y = quantize(%d) {q_scale = [0.05]} : i8{0.05}[3]
})"},
          {"quantize_before_bounds", kFollows, R"(graph @g {stage = canonical} (%x: f32[3]) -> (%y) {
  %r = neg(%x) : f32[3]
  %y = quantize(%r) {q_scale = [0.1]} : i8{0.1}[3]
})"},
          {"quantize_before_movement", kFollows, R"(graph @g {stage = canonical} (%x: f32[3]) -> (%y) {
  %r = neg(%x) : f32[3]
  %y = quantize(%r) {q_scale = [0.1]} : i8{0.1}[3]
})"},
          {"quantize_before_movement", "the result has one scale",
           R"(graph @g {stage = canonical} (%x: f32[1,2,4,4]) -> (%y) {
  %r = upsample_nearest2d(%x) {size = [8,8]} : f32[1,2,8,8]
  %y = quantize(%r) {q_scale = [0.1,0.2], q_axis = 1} : i8{0.1,0.2@1}[1,2,8,8]
})"},
          {"transposed_integers_as_phases", "x is quantized",
           R"(graph @g {stage = canonical} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %y = conv_transpose2d(%x, %w) {stride = [2,2]} : f32[1,1,3,3]
})"},
          {"mean_of_integers",
           "y is the mean over height and width of reals of integers of the result's type, and nothing else reads it",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,3,3]
  %m = mean(%d) {axes = [1,2]} : f32[1,3]
  %y = quantize(%m) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[1,3]
})"},
          {"bilinear_of_integers",
           "nothing else reads y, an image that grows from i8 of one scale and fixed size, by centres or by corners, "
           "by "
           "whole factors with shares that are bytes",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[1,2,3,3]) -> (%y) {
  %d = dequantize(%x) : f32[1,2,3,3]
  %m = upsample_bilinear2d(%d) {size = [6,8]} : f32[1,2,6,8]
  %y = quantize(%m) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[1,2,6,8]
})"},
          {"layer_of_real_sums",
           "x is the reals of i8 and w those of i8 weights with one scale or those of filters; b is a constant or the "
           "reals of one; the result is no quantized value",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[3,4], %b: f32[2]) -> (%y) {
  %w = constant() {value = i8[2,4] {1, -2, 3, 4, 5, -128, 127, 7}, q_scale = [0.02]} : i8{0.02}[2,4]
  %d = dequantize(%x) : f32[3,4]
  %v = dequantize(%w) : f32[2,4]
  %y = linear(%d, %v, %b) : f32[3,2]
})"},
          {"layer_of_integers",
           "y is read by nothing else; f is a layer that accelerators have or a function of one value, and its "
           "operands are reals of integers of the result's type, i8 or i16, or i8 weights, whose scales are those of "
           "filters, or numbers; weights and biases of normalizations are constants",
           R"(graph @g {stage = canonical} (%x: f32[3]) -> (%y) {
  %r = neg(%x) : f32[3]
  %y = quantize(%r) {q_scale = [0.1]} : i8{0.1}[3]
})"},
          {"layer_of_integers",
           "y is read by nothing else; f is a layer that accelerators have or a function of one value, and its "
           "operands are reals of integers of the result's type, i8 or i16, or i8 weights, whose scales are those of "
           "filters, or numbers; weights and biases of normalizations are constants",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,2]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, -2, 3, 4, 5, 6}, q_scale = [0.02,0.5]} : i8{0.02,0.5}[2,3]
  %d = dequantize(%x) : f32[2,2]
  %v = dequantize(%w) : f32[2,3]
  %c = matmul(%d, %v) : f32[2,3]
  %y = quantize(%c) {q_scale = [0.03], q_zero = -5} : i8{0.03:-5}[2,3]
})"},
          {"slopes_of_integers",
           "nothing else reads y, of prelu or leaky_relu with positive slopes, nor f's result, a convolution or linear "
           "layer with constant weights, with a slope or one a filter",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,5,2]) -> (%y) {
  %w = constant() {value = i8[2,2] {100, -25, 13, 64}, q_scale = [0.02]} : i8{0.02}[2,2]
  %d = dequantize(%x) : f32[2,5,2]
  %v = dequantize(%w) : f32[2,2]
  %c = linear(%d, %v) : f32[2,5,2]
  %p = leaky_relu(%c) {negative_slope = -0.1} : f32[2,5,2]
  %y = quantize(%p) {q_scale = [0.08]} : i8{0.08}[2,5,2]
})"},
          {"slopes_of_integers",
           "nothing else reads y, of prelu or leaky_relu with positive slopes, nor f's result, a convolution or linear "
           "layer with constant weights, with a slope or one a filter",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,5,2], %w: i8{0.02}[2,2]) -> (%y) {
  %d = dequantize(%x) : f32[2,5,2]
  %v = dequantize(%w) : f32[2,2]
  %c = linear(%d, %v) : f32[2,5,2]
  %p = leaky_relu(%c) {negative_slope = 0.1} : f32[2,5,2]
  %y = quantize(%p) {q_scale = [0.08]} : i8{0.08}[2,5,2]
})"},
          {"slopes_of_integers", "the result is i8, and f can be a layer of integers",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,5,2]) -> (%y) {
  %w = constant() {value = i8[2,2] {100, -25, 13, 64}, q_scale = [0.02]} : i8{0.02}[2,2]
  %d = dequantize(%x) : f32[2,5,2]
  %v = dequantize(%w) : f32[2,2]
  %c = linear(%d, %v) : f32[2,5,2]
  %p = leaky_relu(%c) {negative_slope = 0.1} : f32[2,5,2]
  %y = quantize(%p) {to = u8, q_scale = [0.08]} : u8{0.08}[2,5,2]
})"},
          {"movement_before_dequantize",
           "x has one scale, or is a constant that a reshape leaves its first axis, that of its scales",
           R"(graph @g {stage = imported} (%x: f32[2,2]) -> (%y) {
  %w = constant() {value = i8[2,2] {1, -2, 3, 4}, q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,2]
  %d = dequantize(%w) : f32[2,2]
  %r = reshape(%d) {shape = [4]} : f32[4]
  %y = add(%r, %r) : f32[4]
})"},
          {"integers_are_no_nan", "the result has the type of x", R"(graph @g {stage = canonical} (%x: f32[3]) -> (%y) {
  %c = constant() {value = f32[2,1] {0, 0}} : f32[2,1]
  %n = ne(%x, %x) : bool[3]
  %y = where(%n, %c, %x) : f32[2,3]
})"},
          {"integers_are_no_nan", "x stands for integers", R"(graph @g {stage = canonical} (%x: f32[3]) -> (%y) {
  %c = constant() {value = f32[] {0}} : f32[]
  %n = ne(%x, %x) : bool[3]
  %y = where(%n, %c, %x) : f32[3]
})"},
          {"function_before_movement",
           "f is a function of one value, other operands being numbers, and its result has one scale; nothing else "
           "reads what is moved",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,4]) -> (%y) {
  %p = permute(%x) {perm = [1,0]} : i8{0.1:1}[4,2]
  %e = erf(%p) {q_scale = [0.01]} : i8{0.01}[4,2]
  %y = add(%e, %p) {q_scale = [0.1]} : i8{0.1}[4,2]
})"},
          {"function_before_movement",
           "f is a function of one value, other operands being numbers, and its result has one scale; nothing else "
           "reads what is moved",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,4]) -> (%y) {
  %p = permute(%x) {perm = [1,0]} : i8{0.1:1}[4,2]
  %y = erf(%p) {q_scale = [0.01,0.02], q_axis = 1} : i8{0.01,0.02@1}[4,2]
})"},
          {"functions_as_table",
           "all values are i8 with a scale; f, g, ... are elementwise, other operands being numbers; what is between "
           "is "
           "read by nothing else; some node reads two of the values, and some is no layer that accelerators have",
           R"(graph @g {stage = canonical} (%x: f32[3]) -> (%y) {
  %e = erf(%x) : f32[3]
  %y = mul(%e, %x) : f32[3]
})"},
          {"linear_of_integers_turned", "w is a matrix whose axes the permutation turns, and x has two axes or more",
           R"(graph @g {stage = canonical} (%x: f32[3,3]) -> (%y) {
  %w = constant() {value = i8[3,3] {1, -2, 3, 4, 5, -6, 7, 8, 9}, q_scale = [0.25]} : i8{0.25}[3,3]
  %d = dequantize(%w) : f32[3,3]
  %p = permute(%d) {perm = [0,1]} : f32[3,3]
  %y = matmul(%x, %p) : f32[3,3]
})"},
          {"linear_of_integers", kMatrix, R"(graph @g {stage = canonical} (%x: f32[2,1,3]) -> (%y) {
  %w = constant() {value = i8[2,3,1] {1, -2, 3, 4, 5, -6}, q_scale = [0.25]} : i8{0.25}[2,3,1]
  %d = dequantize(%w) : f32[2,3,1]
  %y = matmul(%x, %d) : f32[2,1,1]
})"},
          {"linear_of_integers", "w has one scale, or one for each column",
           R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %w = constant() {value = i8[3,1] {1, -2, 3}, q_scale = [0.25,0.5,1]} : i8{0.25,0.5,1}[3,1]
  %d = dequantize(%w) : f32[3,1]
  %y = matmul(%x, %d) : f32[2,1]
})"},
          {"bias_of_integers",
           "the layer has no bias, and b is one for each of its filters, a constant or the reals of one",
           R"(graph @g {stage = canonical} (%x: f32[2,3], %b: f32[2]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, -2, 3, 4, 5, -6}, q_scale = [0.25]} : i8{0.25}[2,3]
  %d = dequantize(%w) : f32[2,3]
  %l = linear(%x, %d) : f32[2,2]
  %y = add(%l, %b) : f32[2,2]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
