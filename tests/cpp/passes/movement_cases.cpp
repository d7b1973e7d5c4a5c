// Movements that do nothing or follow one another.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& movement_cases() {
  static const Cases cases = {
      {
          {"identity_nothing", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %y = identity(%x) : f32[2]
})",
           ""},
          {"reshape_nothing", R"(graph @g {stage = imported} (%x: i8{0.5:1}[2,3]) -> (%y) {
  %y = reshape(%x) {shape = [2,3]} : i8{0.5:1}[2,3]
})",
           ""},
          {"gather_of_one", R"(graph @g {stage = imported} (%x: f32[2,5,3]) -> (%y) {
  %c = constant() {value = i64[] {-2}} : i64[]
  %y = gather(%x, %c) {axis = 1} : f32[2,3]
})",
           "slice reshape"},
          {"permute_of_permute", R"(graph @g {stage = imported} (%x: i8{0.5:1}[2,3,4]) -> (%y) {
  %t0 = permute(%x) {perm = [1,2,0]} : i8{0.5:1}[3,4,2]
  %y = permute(%t0) {perm = [0,2,1]} : i8{0.5:1}[3,2,4]
})",
           "permute", 0, Values::random},
          {"permute_of_fewer_axes", R"(graph @g {stage = imported} (%x: i8{0.5:1}[2,3,2,2,3]) -> (%y) {
  %y = permute(%x) {perm = [0,2,1,3,4]} : i8{0.5:1}[2,2,3,2,3]
})",
           "reshape permute reshape", 0, Values::random},
          {"permute_of_fewer_axes",
           R"(graph @g {stage = imported, symbols = [n: 1..4 = 2]} (%x: f32[n,3,1,2,3,2]) -> (%y) {
  %y = permute(%x) {perm = [3,4,2,5,0,1]} : f32[2,3,1,2,n,3]
})",
           "reshape permute reshape", 0, Values::random},
          {"permute_as_reshape", R"(graph @g {stage = imported} (%x: i8{0.5:1}[2,1,3]) -> (%y) {
  %y = permute(%x) {perm = [0,2,1]} : i8{0.5:1}[2,3,1]
})",
           "reshape", 0, Values::random},
          {"reshape_of_reshape", R"(graph @g {stage = imported} (%x: i8{0.5:1}[2,6]) -> (%y) {
  %t0 = reshape(%x) {shape = [3,4]} : i8{0.5:1}[3,4]
  %y = reshape(%t0) {shape = [12]} : i8{0.5:1}[12]
})",
           "reshape", 0, Values::random},
          {"reshape_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = reshape(%x) {shape = [2,3]} : f32[2,3]
})",
           ""},
          {"permute_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = permute(%x) {perm = [0,1]} : f32[2,3]
})",
           ""},
          {"expand_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = expand(%x) {shape = [2,3]} : f32[2,3]
})",
           ""},
          {"cast_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = cast(%x) {to = f32} : f32[2,3]
})",
           ""},
          {"slice_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = slice(%x) {axis = 1} : f32[2,3]
})",
           ""},
          {"pad_nothing", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = pad(%x) {padding = [0,0,0,0]} : f32[2,3]
})",
           ""},
          {"concat_of_slices", R"(graph @g {stage = imported} (%x: f32[2,7]) -> (%y) {
  %a = slice(%x) {axis = 1, end = 3} : f32[2,3]
  %b = slice(%x) {axis = -1, start = 3, end = 4} : f32[2,1]
  %c = slice(%x) {axis = 1, start = 4} : f32[2,3]
  %y = concat(%a, %b, %c) {axis = 1} : f32[2,7]
})",
           ""},
          {"concat_of_one", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = concat(%x) {axis = 1} : f32[2,3]
})",
           ""},
          {"reshape_of_reshape", R"(graph @g {stage = imported} (%x: f32[2,6]) -> (%y) {
  %t0 = reshape(%x) {shape = [3,4]} : f32[3,4]
  %y = reshape(%t0) {shape = [12]} : f32[12]
})",
           "reshape"},
          {"linear_of_joined_axes", R"(graph @g {stage = imported} (%x: f32[2,3,4], %w: f32[5,4]) -> (%y) {
  %rows = reshape(%x) {shape = [6,4]} : f32[6,4]
  %t = linear(%rows, %w) : f32[6,5]
  %y = reshape(%t) {shape = [2,3,5]} : f32[2,3,5]
})",
           "linear"},
          {"linear_of_joined_axes", R"(graph @g {stage = imported} (%x: f32[2,3,2,2], %w: f32[5,4]) -> (%y) {
  %rows = reshape(%x) {shape = [6,4]} : f32[6,4]
  %t = linear(%rows, %w) : f32[6,5]
  %y = reshape(%t) {shape = [2,3,5]} : f32[2,3,5]
})",
           "reshape linear"},
          {"quotient_of_expanded", R"(graph @g {stage = imported} (%x: f32[2,3,1]) -> (%y) {
  %c = constant() {value = f32[] {7}} : f32[]
  %t = expand(%x) {shape = [2,3,4]} : f32[2,3,4]
  %y = div(%t, %c) : f32[2,3,4]
})",
           "div expand"},
          {"function_of_expanded", R"(graph @g {stage = imported} (%x: f32[3,1], %z: f32[2,3,4]) -> (%y) {
  %t = expand(%x) {shape = [2,3,4]} : f32[2,3,4]
  %y = sub(%z, %t) : f32[2,3,4]
})",
           "sub"},
          {"function_of_expanded", R"(graph @g {stage = imported} (%x: f32[1,4], %z: f32[3,4]) -> (%y) {
  %t = expand(%x) {shape = [3,4]} : f32[3,4]
  %m = gt(%z, %z) : bool[3,4]
  %y = where(%m, %t, %z) : f32[3,4]
})",
           "gt where"},
          {"function_of_line", R"(graph @g {stage = imported} (%x: f32[2,3,1,6]) -> (%y) {
  %t = reshape(%x) {shape = [2,3,6]} : f32[2,3,6]
  %y = tanh(%t) : f32[2,3,6]
})",
           "tanh reshape"},
          {"channels_of_line", R"(graph @g {stage = imported} (%x: f32[2,3,1,6]) -> (%y) {
  %c = constant() {value = f32[3,1] {1,2,3}} : f32[3,1]
  %t = reshape(%x) {shape = [2,3,6]} : f32[2,3,6]
  %y = mul(%c, %t) : f32[2,3,6]
})",
           "mul reshape"},
          {"sum_of_lines", R"(graph @g {stage = imported} (%x: f32[2,3,6,1], %z: f32[2,3,6,1]) -> (%y) {
  %s = reshape(%x) {shape = [2,3,6]} : f32[2,3,6]
  %t = reshape(%z) {shape = [2,3,6]} : f32[2,3,6]
  %y = sub(%s, %t) : f32[2,3,6]
})",
           "sub reshape"},
          {"permute_of_permute", R"(graph @g {stage = imported} (%x: f32[2,3,4]) -> (%y) {
  %t0 = permute(%x) {perm = [1,2,0]} : f32[3,4,2]
  %y = permute(%t0) {perm = [0,2,1]} : f32[3,2,4]
})",
           "permute"},
          {"permute_as_reshape", R"(graph @g {stage = imported} (%x: f32[2,1,3]) -> (%y) {
  %y = permute(%x) {perm = [0,2,1]} : f32[2,3,1]
})",
           "reshape"},
          {"pad_into_convolution", R"(graph @g {stage = imported} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %p = pad(%x) {padding = [0,0,1,0,0,0,0,2]} : f32[1,1,4,5]
  %y = conv2d(%p, %w) {padding = [0,1]} : f32[1,1,3,6]
})",
           "conv2d"},
          {"pad_into_convolution", R"(graph @g {stage = imported} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %p = pad(%x) {padding = [0,0,1,1,0,0,1,1]} : f32[1,1,5,5]
  %y = conv2d(%p, %w) : f32[1,1,4,4]
})",
           "conv2d"},
          {"reduce_three_axes", R"(graph @g {stage = imported} (%x: f32[2,3,2,4,5]) -> (%y) {
  %y = reduce_max(%x) {axes = [2]} : f32[2,3,4,5]
})",
           "reshape reduce_max reshape"},
          {"reduce_three_axes", R"(graph @g {stage = imported, symbols = [n: 1..4 = 2]} (%x: f32[n,3,2,4,5]) -> (%y) {
  %y = reduce_min(%x) {axes = [-1,-2], keepdim = true} : f32[n,3,2,1,1]
})",
           "reshape reduce_min reshape"},
      },
      {
          {"reshape_nothing", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = reshape(%x) {shape = [6]} : f32[6]
})"},
          {"permute_nothing", "the axes keep their order", R"(graph @g {stage = imported} (%x: f32[2,2]) -> (%y) {
  %y = permute(%x) {perm = [1,0]} : f32[2,2]
})"},
          {"gather_of_one", "there is one index, inside an axis of fixed size",
           R"(graph @g {stage = imported} (%x: f32[5,3]) -> (%y) {
  %c = constant() {value = i64[2] {1, 1}} : i64[2]
  %y = gather(%x, %c) : f32[2,3]
})"},
          {"permute_nothing", "the result has the type of x",
           R"(graph @g {stage = imported} (%x: i8{0.5}[2,2]) -> (%y) {
  %y = permute(%x) {perm = [0,1], q_scale = [0.25]} : i8{0.25}[2,2]
})"},
          {"reshape_of_reshape", "quantized values have one scale",
           R"(graph @g {stage = imported} (%x: i8{0.5,0.25}[2,6]) -> (%y) {
  %t0 = reshape(%x) {shape = [2,2,3], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,2,3]
  %y = reshape(%t0) {shape = [2,6], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,6]
})"},
          {"quotient_of_expanded", "c is one number, of no more axes than x",
           R"(graph @g {stage = imported} (%x: f32[2,1]) -> (%y) {
  %c = constant() {value = f32[3] {7, 1, 2}} : f32[3]
  %t = expand(%x) {shape = [2,3]} : f32[2,3]
  %y = div(%t, %c) : f32[2,3]
})"},
          {"function_of_expanded", "an operand of reals is expanded, another one has the result's shape",
           R"(graph @g {stage = imported} (%x: f32[3], %z: f32[2,1]) -> (%y) {
  %t = expand(%x) {shape = [2,3]} : f32[2,3]
  %y = mul(%t, %z) : f32[2,3]
})"},
          {"function_of_expanded", "an operand of reals is expanded, another one has the result's shape",
           R"(graph @g {stage = imported} (%x: i8{0.5:1}[3], %z: i8{0.5:1}[2,3]) -> (%y) {
  %t = expand(%x) {shape = [2,3]} : i8{0.5:1}[2,3]
  %y = gt(%t, %z) : bool[2,3]
})"},
          {"linear_of_joined_axes", "the result keeps the last axis of the linear layer",
           R"(graph @g {stage = imported} (%x: f32[2,3,4], %w: f32[5,4]) -> (%y) {
  %rows = reshape(%x) {shape = [6,4]} : f32[6,4]
  %t = linear(%rows, %w) : f32[6,5]
  %y = reshape(%t) {shape = [5,6]} : f32[5,6]
})"},
          {"permute_of_permute", "quantized values have one scale",
           R"(graph @g {stage = imported} (%x: i8{0.5,0.25}[2,6]) -> (%y) {
  %t0 = permute(%x) {perm = [1,0], q_scale = [0.5,0.25], q_axis = 1} : i8{0.5,0.25@1}[6,2]
  %y = permute(%t0) {perm = [1,0], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,6]
})"},
          {"permute_of_fewer_axes", "x has more than four axes, of which some stay neighbours or have size 1",
           R"(graph @g {stage = imported} (%x: f32[2,3,2,2]) -> (%y) {
  %y = permute(%x) {perm = [0,2,3,1]} : f32[2,2,2,3]
})"},
          {"permute_of_fewer_axes", "x has more than four axes, of which some stay neighbours or have size 1",
           R"(graph @g {stage = imported} (%x: f32[2,3,2,2,3]) -> (%y) {
  %y = permute(%x) {perm = [4,3,2,1,0]} : f32[3,2,2,3,2]
})"},
          {"permute_of_fewer_axes", "quantized values have one scale",
           R"(graph @g {stage = imported} (%x: i8{0.5,0.25@4}[2,3,2,2,2]) -> (%y) {
  %y = permute(%x) {perm = [0,2,1,3,4], q_scale = [0.5,0.25], q_axis = 4} : i8{0.5,0.25@4}[2,2,3,2,2]
})"},
          {"permute_as_reshape", "quantized values have one scale",
           R"(graph @g {stage = imported} (%x: i8{0.5,0.25}[2,1]) -> (%y) {
  %y = permute(%x) {perm = [1,0], q_scale = [0.5,0.25], q_axis = 1} : i8{0.5,0.25@1}[1,2]
})"},
          {"expand_nothing", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %y = expand(%x) {shape = [2,3]} : f32[2,3]
})"},
          {"cast_nothing", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %y = cast(%x) {to = i32} : i32[2]
})"},
          {"slice_nothing", "the step is 1", R"(graph @g {stage = imported} (%x: f32[1,3]) -> (%y) {
  %y = slice(%x) {axis = 0, step = 2} : f32[1,3]
})"},
          {"slice_nothing", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = slice(%x) {axis = 1, start = 1} : f32[2,2]
})"},
          {"pad_nothing", "every width is 0", R"(graph @g {stage = imported} (%x: f32[3]) -> (%y) {
  %y = pad(%x) {padding = [1,-1]} : f32[3]
})"},
          {"concat_of_slices", "the parts follow one another", R"(graph @g {stage = imported} (%x: f32[2,6]) -> (%y) {
  %a = slice(%x) {axis = 1, end = 3} : f32[2,3]
  %b = slice(%x) {axis = 1, start = 3} : f32[2,3]
  %y = concat(%b, %a) {axis = 1} : f32[2,6]
})"},
          {"concat_of_slices", "the result has the type of x", R"(graph @g {stage = imported} (%x: f32[2,6]) -> (%y) {
  %a = slice(%x) {axis = 1, end = 3} : f32[2,3]
  %b = slice(%x) {axis = 1, start = 3, end = 5} : f32[2,2]
  %y = concat(%a, %b) {axis = 1} : f32[2,5]
})"},
          {"concat_of_one", "there is one input", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %y = concat(%x, %x) {axis = 0} : f32[4]
})"},
          {"permute_as_reshape", "the axes longer than 1 keep their order",
           R"(graph @g {stage = imported} (%x: f32[2,1,3]) -> (%y) {
  %y = permute(%x) {perm = [2,0,1]} : f32[3,2,1]
})"},
          {"function_of_line", "x is [N,C,H,W] with H or W 1, which the reshape leaves out",
           R"(graph @g {stage = imported} (%x: f32[2,3,1,6]) -> (%y) {
  %t = reshape(%x) {shape = [2,6,3]} : f32[2,6,3]
  %y = tanh(%t) : f32[2,6,3]
})"},
          {"channels_of_line",
           "x is [N,C,H,W] with H or W 1, which the reshape leaves out, and c has one value for each channel",
           R"(graph @g {stage = imported} (%x: f32[2,3,1,6]) -> (%y) {
  %c = constant() {value = f32[6] {1,2,3,4,5,6}} : f32[6]
  %t = reshape(%x) {shape = [2,3,6]} : f32[2,3,6]
  %y = mul(%t, %c) : f32[2,3,6]
})"},
          {"sum_of_lines", "x and z are [N,C,H,W] of one shape with H or W 1, which the reshapes leave out",
           R"(graph @g {stage = imported} (%x: f32[2,3,1,6], %z: f32[2,3,6,1]) -> (%y) {
  %s = reshape(%x) {shape = [2,3,6]} : f32[2,3,6]
  %t = reshape(%z) {shape = [2,3,6]} : f32[2,3,6]
  %y = add(%s, %t) : f32[2,3,6]
})"},
          {"pad_into_convolution", "the padding is zeros, of fixed width, along height and width only",
           R"(graph @g {stage = imported} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %p = pad(%x) {padding = [0,0,1,1,0,0,1,1], value = 1} : f32[1,1,5,5]
  %y = conv2d(%p, %w) : f32[1,1,4,4]
})"},
          {"pad_into_convolution", "the padding is zeros, of fixed width, along height and width only",
           R"(graph @g {stage = imported} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[1,1,2,2] {1, 2, 3, 4}} : f32[1,1,2,2]
  %p = pad(%x) {padding = [0,0,-1,1,0,0,1,1]} : f32[1,1,3,5]
  %y = conv2d(%p, %w) : f32[1,1,2,4]
})"},
          {"reduce_three_axes", "x has more than four axes", R"(graph @g {stage = imported} (%x: f32[2,3,2,4]) -> (%y) {
  %y = reduce_max(%x) {axes = [2]} : f32[2,3,4]
})"},
          {"reduce_three_axes", "the axes stand side by side",
           R"(graph @g {stage = imported} (%x: f32[2,3,2,4,5]) -> (%y) {
  %y = reduce_max(%x) {axes = [0,2]} : f32[3,4,5]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
