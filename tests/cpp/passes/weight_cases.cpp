// Folding into the weights of convolutions and linear layers.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& weight_cases() {
  constexpr std::string_view kArithmetic = "the weights are real";
  constexpr std::string_view kFilters = "the constant varies along the layer's filters only";
  constexpr std::string_view kMoved = "the constant varies along the moved filters only";
  constexpr std::string_view kChannels = "the constant varies along the channels only";
  constexpr std::string_view kNoPadding = "the convolution has no padding";
  static const Cases cases = {
      {
          {"matmul_as_linear", R"(graph @g {stage = imported} (%x: f32[2,4,3]) -> (%y) {
  %w = constant() {value = f32[3,2] {1, 2, 3, 4, 5, 6}} : f32[3,2]
  %y = matmul(%x, %w) : f32[2,4,2]
})",
           "linear", 1e-6},
          {"batch_norm_into_layer", R"(graph @g {stage = imported} (%x: f32[2,2,5,4]) -> (%y) {
  %w = constant() {value = f32[3,2,1,2] {1, -2, 3, 0.5, -1, 2, 0.25, 1, 1, -1, 2, 3}} : f32[3,2,1,2]
  %b = constant() {value = f32[3] {0.5, -1, 2}} : f32[3]
  %gamma = constant() {value = f32[3] {1.5, -0.5, 0}} : f32[3]
  %beta = constant() {value = f32[3] {0.1, 0.2, 0.3}} : f32[3]
  %mean = constant() {value = f32[3] {0.3, -0.7, 1}} : f32[3]
  %var = constant() {value = f32[3] {0.9, 2, 1e-3}} : f32[3]
  %c = conv2d(%x, %w, %b) {padding = [1,1], stride = [2,1]} : f32[2,3,4,5]
  %y = batch_norm(%c, %gamma, %beta, %mean, %var) : f32[2,3,4,5]
})",
           "conv2d", 1e-6, Values::edge},
          {"batch_norm_into_layer", R"(graph @g {stage = imported} (%x: f32[2,2]) -> (%y) {
  %w = constant() {value = f32[3,2] {1, -2, 3, 0.5, -1, 2}} : f32[3,2]
  %mean = constant() {value = f32[3] {0.3, -0.7, 1}} : f32[3]
  %var = constant() {value = f32[3] {0.9, 2, 1e-3}} : f32[3]
  %c = linear(%x, %w) : f32[2,3]
  %y = batch_norm(%c, _, _, %mean, %var) : f32[2,3]
})",
           "linear", 1e-6, Values::edge},
          {"batch_norm_as_scale_and_shift", R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %gamma = constant() {value = f32[3] {1.5, -0.5, 0}} : f32[3]
  %beta = constant() {value = f32[3] {0.1, 0.2, 0.3}} : f32[3]
  %mean = constant() {value = f32[3] {0.3, -0.7, 1}} : f32[3]
  %var = constant() {value = f32[3] {0.9, 2, 1e-3}} : f32[3]
  %y = batch_norm(%x, %gamma, %beta, %mean, %var) : f32[2,3,2]
})",
           "mul add", 1e-6},
          {"scale_into_layer", R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %b = constant() {value = f32[2] {0.5, 3}} : f32[2]
  %c = constant() {value = f32[2,1,1] {3, 0.25}} : f32[2,1,1]
  %z = conv2d(%x, %w, %b) : f32[1,2,2,2]
  %y = mul(%z, %c) : f32[1,2,2,2]
})",
           "conv2d", 1e-6},
          {"scale_into_layer", R"(graph @g {stage = imported} (%x: f32[2,3,2]) -> (%y) {
  %w = constant() {value = f32[3,2] {1, -2, 3, 0.5, -1, 2}} : f32[3,2]
  %c = constant() {value = f32[3] {3, 0.25, -1}} : f32[3]
  %z = linear(%x, %w) : f32[2,3,3]
  %y = mul(%z, %c) : f32[2,3,3]
})",
           "linear", 1e-6},
          {"scale_into_moved", R"(graph @g {stage = imported} (%x: f32[1,2,3,2]) -> (%y) {
  %w = constant() {value = f32[3,2] {1, -2, 3, 0.5, -1, 2}} : f32[3,2]
  %b = constant() {value = f32[3] {0.5, 3, -1}} : f32[3]
  %c = constant() {value = f32[3,1,1] {3, 0.25, -1}} : f32[3,1,1]
  %z = linear(%x, %w, %b) : f32[1,2,3,3]
  %p = permute(%z) {perm = [0,3,1,2]} : f32[1,3,2,3]
  %y = mul(%c, %p) : f32[1,3,2,3]
})",
           "linear permute", 1e-6},
          {"shift_into_layer", R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %c = constant() {value = f32[] {3}} : f32[]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = add(%c, %z) : f32[1,2,2,2]
})",
           "conv2d", 1e-6},
          {"scale_into_transposed", R"(graph @g {stage = imported} (%x: f32[1,4,2,3]) -> (%y) {
  %w = constant() {value = f32[4,2,1,2] {1, -2, 3, 0.5, 2, 1, -1, 4, 0.25, 3, 2, -3, 1, 2, -4, 5}} : f32[4,2,1,2]
  %b = constant() {value = f32[4] {0.5, 3, -1, 2}} : f32[4]
  %c = constant() {value = f32[4,1,1] {3, 0.25, -2, 1}} : f32[4,1,1]
  %z = conv_transpose2d(%x, %w, %b) {stride = [2,1], groups = 2} : f32[1,4,3,4]
  %y = mul(%z, %c) : f32[1,4,3,4]
})",
           "conv_transpose2d", 1e-6},
          {"shift_into_transposed", R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,2,1,1] {1, -2}} : f32[1,2,1,1]
  %c = constant() {value = f32[] {3}} : f32[]
  %z = conv_transpose2d(%x, %w) : f32[1,2,2,2]
  %y = add(%c, %z) : f32[1,2,2,2]
})",
           "conv_transpose2d", 1e-6},
          {"difference_into_layer", R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %c = constant() {value = f32[1,2,1,1] {3, 0.5}} : f32[1,2,1,1]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = sub(%z, %c) : f32[1,2,2,2]
})",
           "conv2d", 1e-6},
          {"depthwise_into_layer", R"(graph @g {stage = imported} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[2,1,2,1] {1, -2, 0.5, 3}} : f32[2,1,2,1]
  %d = constant() {value = f32[2,1,1,1] {3, -0.5}} : f32[2,1,1,1]
  %e = constant() {value = f32[2] {1, 2}} : f32[2]
  %z = conv2d(%x, %w) {padding = [1,0]} : f32[1,2,4,3]
  %y = conv2d(%z, %d, %e) {groups = 2} : f32[1,2,4,3]
})",
           "conv2d", 1e-6, Values::edge},
          {"scale_into_next", R"(graph @g {stage = imported} (%x: f32[1,4,3,3]) -> (%y) {
  %w = constant() {value = f32[2,2,1,1] {1, -2, 0.5, 3}} : f32[2,2,1,1]
  %c = constant() {value = f32[4,1,1] {3, -0.5, 2, 1}} : f32[4,1,1]
  %z = mul(%x, %c) : f32[1,4,3,3]
  %y = conv2d(%z, %w) {groups = 2, padding = [1,1]} : f32[1,2,5,5]
})",
           "conv2d", 1e-6, Values::edge},
          {"shift_into_next", R"(graph @g {stage = imported} (%x: f32[1,2,3,3]) -> (%y) {
  %w = constant() {value = f32[1,2,2,1] {1, -2, 0.5, 3}} : f32[1,2,2,1]
  %c = constant() {value = f32[2,1,1] {3, -0.5}} : f32[2,1,1]
  %z = add(%x, %c) : f32[1,2,3,3]
  %y = conv2d(%z, %w) : f32[1,1,2,3]
})",
           "conv2d", 1e-6, Values::edge},
          {"depthwise_into_next", R"(graph @g {stage = imported} (%x: f32[1,2,3,3]) -> (%y) {
  %w = constant() {value = f32[1,2,2,1] {1, -2, 0.5, 3}} : f32[1,2,2,1]
  %d = constant() {value = f32[2,1,1,1] {3, -0.5}} : f32[2,1,1,1]
  %e = constant() {value = f32[2] {1, 2}} : f32[2]
  %z = conv2d(%x, %d, %e) {groups = 2} : f32[1,2,3,3]
  %y = conv2d(%z, %w) : f32[1,1,2,3]
})",
           "conv2d", 1e-6, Values::edge},
          {"quotient_into_layer", R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %b = constant() {value = f32[2] {0.5, 3}} : f32[2]
  %c = constant() {value = f32[2,1,1] {3, 0.25}} : f32[2,1,1]
  %z = conv2d(%x, %w, %b) : f32[1,2,2,2]
  %y = div(%z, %c) : f32[1,2,2,2]
})",
           "conv2d", 1e-6},
          {"quotient_into_next", R"(graph @g {stage = imported} (%x: f32[1,4,3,3]) -> (%y) {
  %w = constant() {value = f32[2,2,1,1] {1, -2, 0.5, 3}} : f32[2,2,1,1]
  %c = constant() {value = f32[4,1,1] {3, -0.5, 2, 1}} : f32[4,1,1]
  %z = div(%x, %c) : f32[1,4,3,3]
  %y = conv2d(%z, %w) {groups = 2, padding = [1,1]} : f32[1,2,5,5]
})",
           "conv2d", 1e-6, Values::edge},
      },
      {
          {"matmul_as_linear", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1]) -> (%y) {
  %w = constant() {value = i32[1,1] {2}} : i32[1,1]
  %y = matmul(%x, %w) : i32[2,1]
})"},
          {"matmul_as_linear", "w is a matrix", R"(graph @g {stage = imported} (%x: f32[1,1,3]) -> (%y) {
  %w = constant() {value = f32[1,3,1] {2, 3, 4}} : f32[1,3,1]
  %y = matmul(%x, %w) : f32[1,1,1]
})"},
          {"batch_norm_into_layer", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %m = constant() {value = i32[1] {1}} : i32[1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = batch_norm(%c, _, _, %m, %m) : i32[2,1,1,1]
})"},
          {"batch_norm_into_layer", "the layer's filters lie along axis 1",
           R"(graph @g {stage = imported} (%x: f32[1,2,3]) -> (%y) {
  %w = constant() {value = f32[2,3] {1, 2, 3, 4, 5, 6}} : f32[2,3]
  %m = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = linear(%x, %w) : f32[1,2,2]
  %y = batch_norm(%c, _, _, %m, %m) : f32[1,2,2]
})"},
          {"batch_norm_as_scale_and_shift", "the values are real",
           R"(graph @g {stage = imported} (%x: i32[2,1]) -> (%y) {
  %m = constant() {value = i32[1] {1}} : i32[1]
  %y = batch_norm(%x, _, _, %m, %m) : i32[2,1]
})"},
          {"scale_into_layer", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = mul(%c, %w) : i32[2,1,1,1]
})"},
          {"scale_into_layer", kFilters, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %c = constant() {value = f32[2] {3, 0.25}} : f32[2]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = mul(%z, %c) : f32[1,2,2,2]
})"},
          {"scale_into_moved", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %p = permute(%c) {perm = [1,0,2,3]} : i32[1,2,1,1]
  %y = mul(%p, %w) : i32[1,2,1,1]
})"},
          {"scale_into_moved", kMoved, R"(graph @g {stage = imported} (%x: f32[1,3,3,2]) -> (%y) {
  %w = constant() {value = f32[3,2] {1, -2, 3, 0.5, -1, 2}} : f32[3,2]
  %c = constant() {value = f32[3] {3, 0.25, -1}} : f32[3]
  %z = linear(%x, %w) : f32[1,3,3,3]
  %p = permute(%z) {perm = [0,3,1,2]} : f32[1,3,3,3]
  %y = mul(%p, %c) : f32[1,3,3,3]
})"},
          {"shift_into_layer", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = add(%c, %w) : i32[2,1,1,1]
})"},
          {"shift_into_layer", kFilters, R"(graph @g {stage = imported} (%x: f32[1,1,1,1]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %c = constant() {value = f32[2,1,1,1] {3, 0.25}} : f32[2,1,1,1]
  %z = conv2d(%x, %w) : f32[1,2,1,1]
  %y = add(%z, %c) : f32[2,2,1,1]
})"},
          {"scale_into_transposed", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv_transpose2d(%x, %w) : i32[2,1,1,1]
  %y = mul(%c, %w) : i32[2,1,1,1]
})"},
          {"scale_into_transposed", kFilters, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,2,1,1] {1, -2}} : f32[1,2,1,1]
  %c = constant() {value = f32[2] {3, 0.25}} : f32[2]
  %z = conv_transpose2d(%x, %w) : f32[1,2,2,2]
  %y = mul(%z, %c) : f32[1,2,2,2]
})"},
          {"shift_into_transposed", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv_transpose2d(%x, %w) : i32[2,1,1,1]
  %y = add(%c, %w) : i32[2,1,1,1]
})"},
          {"shift_into_transposed", kFilters, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,2,1,1] {1, -2}} : f32[1,2,1,1]
  %c = constant() {value = f32[2] {3, 0.25}} : f32[2]
  %z = conv_transpose2d(%x, %w) : f32[1,2,2,2]
  %y = add(%z, %c) : f32[1,2,2,2]
})"},
          {"difference_into_layer", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = sub(%c, %w) : i32[2,1,1,1]
})"},
          {"difference_into_layer", kFilters, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %c = constant() {value = f32[2] {3, 0.25}} : f32[2]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = sub(%z, %c) : f32[1,2,2,2]
})"},
          {"depthwise_into_layer", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = conv2d(%c, %w) : i32[2,1,1,1]
})"},
          {"depthwise_into_layer", "the second is 1x1 depthwise, stride 1, no padding",
           R"(graph @g {stage = imported} (%x: f32[1,2,2,2]) -> (%y) {
  %w = constant() {value = f32[2,2,1,1] {1, -2, 1, 1}} : f32[2,2,1,1]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = conv2d(%z, %w) : f32[1,2,2,2]
})"},
          {"scale_into_next", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = mul(%x, %w) : i32[2,1,1,1]
  %y = conv2d(%c, %w) : i32[2,1,1,1]
})"},
          {"scale_into_next", kChannels, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %z = mul(%x, %c) : f32[1,1,2,2]
  %y = conv2d(%z, %w) : f32[1,1,2,2]
})"},
          {"shift_into_next", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = add(%x, %w) : i32[2,1,1,1]
  %y = conv2d(%c, %w) : i32[2,1,1,1]
})"},
          {"shift_into_next", kChannels, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %z = add(%x, %c) : f32[1,1,2,2]
  %y = conv2d(%z, %w) : f32[1,1,2,2]
})"},
          {"shift_into_next", kNoPadding, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %c = constant() {value = f32[] {1}} : f32[]
  %z = add(%x, %c) : f32[1,1,2,2]
  %y = conv2d(%z, %w) {padding = [1,0]} : f32[1,1,4,2]
})"},
          {"depthwise_into_next", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = conv2d(%c, %w) : i32[2,1,1,1]
})"},
          {"depthwise_into_next", "the first is 1x1 depthwise, stride 1, no padding",
           R"(graph @g {stage = imported} (%x: f32[1,2,2,2]) -> (%y) {
  %w = constant() {value = f32[2,2,1,1] {1, -2, 1, 1}} : f32[2,2,1,1]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = conv2d(%z, %w) : f32[1,2,2,2]
})"},
          {"depthwise_into_next", "the first has no bias, or the second no padding",
           R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %b = constant() {value = f32[1] {1}} : f32[1]
  %z = conv2d(%x, %w, %b) : f32[1,1,2,2]
  %y = conv2d(%z, %w) {padding = [1,1]} : f32[1,1,4,4]
})"},
          {"quotient_into_layer", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[2,1,1,1]
  %y = div(%c, %w) : i32[2,1,1,1]
})"},
          {"quotient_into_layer", kFilters, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, -2}} : f32[2,1,1,1]
  %c = constant() {value = f32[2] {3, 0.25}} : f32[2]
  %z = conv2d(%x, %w) : f32[1,2,2,2]
  %y = div(%z, %c) : f32[1,2,2,2]
})"},
          {"quotient_into_next", kArithmetic, R"(graph @g {stage = imported} (%x: i32[2,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = div(%x, %w) : i32[2,1,1,1]
  %y = conv2d(%c, %w) : i32[2,1,1,1]
})"},
          {"quotient_into_next", kChannels, R"(graph @g {stage = imported} (%x: f32[1,1,2,2]) -> (%y) {
  %w = constant() {value = f32[1,1,1,1] {1}} : f32[1,1,1,1]
  %c = constant() {value = f32[2] {1, 2}} : f32[2]
  %z = div(%x, %c) : f32[1,1,2,2]
  %y = conv2d(%z, %w) : f32[1,1,2,2]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
