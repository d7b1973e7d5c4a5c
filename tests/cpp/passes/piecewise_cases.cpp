// Piecewise linear functions from relu.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& piecewise_cases() {
  static const Cases cases = {
      {
          {"clamp_from_zero", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 0.7} : f32[2,3,4,3]
})",
           "relu conv2d relu conv2d add", 2e-7, Values::random},
          {"clamp_from_zero", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 6} : f32[2,3,4,3]
})",
           "relu conv2d relu conv2d add", 0, Values::edge},
          {"clamp_from_zero", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 2e4} : f32[2,3]
})",
           "relu reshape conv2d reshape relu reshape conv2d reshape add", 0, Values::edge},
          {"clamp_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -0.3, max = 0.7} : f32[2,3,4,3]
})",
           "conv2d relu conv2d relu conv2d", 3e-7},
          {"clamp_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 6} : f32[2,3,4,3]
})",
           "relu conv2d relu conv2d", 3e-7},
          {"clamp_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0.3, max = 0.7} : f32[2,3,4,3]
})",
           "conv2d relu conv2d relu conv2d", 3e-7},
          {"clamp_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 2, max = 2} : f32[2,3]
})",
           "reshape conv2d reshape relu reshape conv2d reshape relu reshape conv2d reshape", 3e-7},
          {"clamp_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -3, max = 16} : f32[2,3,4,3]
})",
           "conv2d relu conv2d relu conv2d", 3e-7},
          {"clamp_below_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0.3} : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"clamp_below_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -0.3} : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"clamp_below_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0} : f32[2,3,4,3]
})",
           "relu", 0},
          {"clamp_above_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {max = 0.7} : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"clamp_above_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {max = 2} : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"clamp_above_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {max = -0.7} : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"clamp_from_minimum_and_maximum", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -0.3, max = 0.7} : f32[2,3,4,3]
})",
           "maximum minimum"},
          {"clamp_from_minimum_and_maximum", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {max = 0.7} : f32[2,3,4,3]
})",
           "minimum"},
          {"relu_as_clamp", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = relu(%x) : f32[2,3]
})",
           "clamp"},
          {"hardsigmoid_from_clamp", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = hardsigmoid(%x) : f32[2,3,4,3]
})",
           "conv2d clamp", 3e-7},
          {"hardswish_as_product", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = hardswish(%x) : f32[2,3]
})",
           "hardsigmoid mul", 3e-7},
          {"silu_as_product", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = silu(%x) : f32[2,3]
})",
           "sigmoid mul", 1e-6, Values::edge},
          {"abs_from_relu", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = abs(%x) : f32[2,3]
})",
           "relu neg relu add"},
          {"maximum_from_relu", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[2,3]) -> (%y) {
  %y = maximum(%a, %b) : f32[2,3]
})",
           "sub relu add", 5e-7, Values::random},
          {"minimum_from_relu", R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[2,3]) -> (%y) {
  %y = minimum(%a, %b) : f32[2,3]
})",
           "sub relu sub", 5e-7, Values::random},
          {"maximum_with_constant", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[3,1,1] {0.5, 2, 0}} : f32[3,1,1]
  %y = maximum(%x, %c) : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"maximum_with_constant", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[3,1,1] {0.5, -2, 0}} : f32[3,1,1]
  %y = maximum(%x, %c) : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"minimum_with_constant", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[3,1,1] {-0.5, -2, 0}} : f32[3,1,1]
  %y = minimum(%x, %c) : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"minimum_with_constant", R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %c = constant() {value = f32[3,1,1] {0.5, -2, 0}} : f32[3,1,1]
  %y = minimum(%x, %c) : f32[2,3,4,3]
})",
           "conv2d relu conv2d", 3e-7},
          {"reduce_max_as_maximum", R"(graph @g {stage = canonical} (%x: f32[2,3,4]) -> (%y) {
  %y = reduce_max(%x) {axes = [1]} : f32[2,4]
})",
           "slice slice maximum slice maximum reshape"},
          {"reduce_max_as_maximum", R"(graph @g {stage = canonical} (%x: f32[2,2]) -> (%y) {
  %y = reduce_max(%x) {axes = [-1], keepdim = true} : f32[2,1]
})",
           "slice slice maximum"},
          {"reduce_min_as_minimum", R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = reduce_min(%x) {axes = [0]} : f32[3]
})",
           "slice slice minimum reshape"},
      },
      {
          {"clamp_from_zero", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 1} : i32[2,3]
})"},
          {"clamp_from_zero", "lo = 0 < hi, finite",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -1, max = 2} : f32[2,3,4,3]
})"},
          {"clamp_from_zero", "lo = 0 < hi, finite",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0} : f32[2,3,4,3]
})"},
          {"clamp_from_relu", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 1, max = 2} : i32[2,3]
})"},
          {"clamp_from_relu", "lo <= hi, both finite",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 2, max = 1} : f32[2,3,4,3]
})"},
          {"clamp_from_relu", "lo <= hi, both finite",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {max = 1} : f32[2,3,4,3]
})"},
          {"clamp_from_relu", "no finite bound is further from 0 than 16",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -1, max = 17} : f32[2,3,4,3]
})"},
          {"clamp_below_from_relu", "no finite bound is further from 0 than 16",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = -65504} : f32[2,3,4,3]
})"},
          {"clamp_above_from_relu", "no finite bound is further from 0 than 16",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {max = 65504} : f32[2,3,4,3]
})"},
          {"clamp_below_from_relu", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0} : i32[2,3]
})"},
          {"clamp_below_from_relu", "lo is finite and hi is inf",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 1} : f32[2,3,4,3]
})"},
          {"clamp_above_from_relu", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %y = clamp(%x) {max = 0} : i32[2,3]
})"},
          {"clamp_above_from_relu", "hi is finite and lo is -inf",
           R"(graph @g {stage = canonical} (%x: f32[2,3,4,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 1} : f32[2,3,4,3]
})"},
          {"clamp_from_minimum_and_maximum", "x is real", R"(graph @g {stage = canonical} (%x: i32[2,3]) -> (%y) {
  %y = clamp(%x) {max = 0} : i32[2,3]
})"},
          {"hardsigmoid_from_clamp", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical} (%x: f32[]) -> (%y) {
  %y = hardsigmoid(%x) : f32[]
})"},
          {"abs_from_relu", "x is of a float type", R"(graph @g {stage = canonical} (%x: i32[2]) -> (%y) {
  %y = abs(%x) : i32[2]
})"},
          {"maximum_from_relu", "both operands are of a float type and of one shape",
           R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[3]) -> (%y) {
  %y = maximum(%a, %b) : f32[2,3]
})"},
          {"minimum_from_relu", "both operands are of a float type and of one shape",
           R"(graph @g {stage = canonical} (%a: f32[2,3], %b: f32[3]) -> (%y) {
  %y = minimum(%a, %b) : f32[2,3]
})"},
          {"maximum_from_relu", "no operand of a maximum or minimum is a constant",
           R"(graph @g {stage = canonical} (%a: f32[2,2]) -> (%y) {
  %c = constant() {value = f32[2,2] {1, 2, 3, 4}} : f32[2,2]
  %y = maximum(%a, %c) : f32[2,2]
})"},
          {"maximum_with_constant", "c is at most 16 from 0 and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2]) -> (%y) {
  %c = constant() {value = f32[] {inf}} : f32[]
  %y = maximum(%x, %c) : f32[2]
})"},
          {"minimum_from_relu", "no operand of a maximum or minimum is a constant",
           R"(graph @g {stage = canonical} (%a: f32[2,2]) -> (%y) {
  %c = constant() {value = f32[2,2] {1, 2, 3, 4}} : f32[2,2]
  %y = minimum(%a, %c) : f32[2,2]
})"},
          {"minimum_with_constant", "c is at most 16 from 0 and varies along at most one axis of x, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[2,2,2]) -> (%y) {
  %c = constant() {value = f32[2,2] {1, 2, 3, 4}} : f32[2,2]
  %y = minimum(%x, %c) : f32[2,2,2]
})"},
          {"reduce_max_as_maximum", "one axis of fixed size, at most 16, is reduced",
           R"(graph @g {stage = canonical} (%x: f32[2,17]) -> (%y) {
  %y = reduce_max(%x) {axes = [1]} : f32[2]
})"},
          {"reduce_min_as_minimum", "one axis of fixed size, at most 16, is reduced",
           R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = reduce_min(%x) {axes = [0,1]} : f32[]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
