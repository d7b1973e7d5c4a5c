// Pooling and means by each other.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& pooling_cases() {
  static const Cases cases = {
      {
          {"average_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[2,3,6,5]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2]} : f32[2,3,3,2]
})",
           "conv2d", 1e-6},
          {"average_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[1,2,6,5]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [3,2], stride = [1,2], padding = [1,1]} : f32[1,2,6,3]
})",
           "conv2d", 1e-6},
          {"average_as_depthwise", R"(graph @g {stage = canonical} (%x: f32[1,2,6,5]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], divisor_override = 3} : f32[1,2,3,2]
})",
           "conv2d", 1e-6},
          {"average_rows_then_columns", R"(graph @g {stage = canonical} (%x: f32[1,2,6,5]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [3,2], stride = [1,2], padding = [1,1]} : f32[1,2,6,3]
})",
           "avg_pool2d avg_pool2d", 1e-6},
          {"maximum_rows_then_columns", R"(graph @g {stage = canonical} (%x: f32[1,2,7,6]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [3,2], stride = [2,2], ceil_mode = true} : f32[1,2,3,3]
})",
           "max_pool2d max_pool2d"},
          {"maximum_rows_then_columns", R"(graph @g {stage = canonical} (%x: f32[1,2,7,6]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [3,3], stride = [1,1], padding = [1,1], dilation = [2,1]} : f32[1,2,5,6]
})",
           "max_pool2d max_pool2d"},
          {"average_of_averages", R"(graph @g {stage = canonical} (%x: f32[1,2,12,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [12,4]} : f32[1,2,1,1]
})",
           "avg_pool2d avg_pool2d avg_pool2d", 1e-6},
          {"adaptive_as_average", R"(graph @g {stage = canonical} (%x: f32[1,2,12,5]) -> (%y) {
  %y = adaptive_avg_pool2d(%x) {output_size = [3,1]} : f32[1,2,3,1]
})",
           "avg_pool2d", 1e-6},
          {"largest_as_pool", R"(graph @g {stage = canonical} (%x: f32[2,3,4,5]) -> (%y) {
  %y = reduce_max(%x) {axes = [2,3]} : f32[2,3]
})",
           "max_pool2d reshape"},
          {"largest_as_pool", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,3,4,5]) -> (%y) {
  %y = reduce_max(%x) {axes = [-1,-2], keepdim = true, q_scale = [0.03125], q_zero = -9} : i8{0.03125:-9}[2,3,1,1]
})",
           "max_pool2d"},
          {"least_as_pool", R"(graph @g {stage = canonical, symbols = [n: 1..4 = 2]} (%x: f32[n,3,4,5]) -> (%y) {
  %y = reduce_min(%x) {axes = [2,3], keepdim = true} : f32[n,3,1,1]
})",
           "neg max_pool2d neg"},
          {"least_as_pool", R"(graph @g {stage = canonical} (%x: i8{0.03125:127}[2,3,2,3]) -> (%y) {
  %y = reduce_min(%x) {axes = [2,3], q_scale = [0.03125], q_zero = 127} : i8{0.03125:127}[2,3]
})",
           "conv2d max_pool2d conv2d reshape"},
          {"mean_as_average", R"(graph @g {stage = canonical} (%x: f32[2,3,4,5]) -> (%y) {
  %y = mean(%x) {axes = [2,3]} : f32[2,3]
})",
           "avg_pool2d reshape", 1e-6},
          {"mean_as_average", R"(graph @g {stage = canonical, symbols = [n: 1..4 = 2]} (%x: f32[n,3,4,5]) -> (%y) {
  %y = mean(%x) {axes = [-1,-2], keepdim = true} : f32[n,3,1,1]
})",
           "avg_pool2d", 1e-6},
          {"mean_as_linear", R"(graph @g {stage = canonical} (%x: f32[2,3,5]) -> (%y) {
  %y = mean(%x) {axes = [-1]} : f32[2,3]
})",
           "linear reshape", 1e-6},
          {"mean_as_linear", R"(graph @g {stage = canonical} (%x: f32[2,5]) -> (%y) {
  %y = mean(%x) {axes = [1], keepdim = true} : f32[2,1]
})",
           "linear", 1e-6},
      },
      {
          {"average_as_depthwise", "x is real and its number of channels is fixed, 2^20 at most",
           R"(graph @g {stage = canonical, symbols = [c: 1..4 = 2]} (%x: f32[1,c,2,2]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2]} : f32[1,c,1,1]
})"},
          {"average_as_depthwise", "all windows have one divisor",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], ceil_mode = true} : f32[1,1,2,2]
})"},
          {"average_as_depthwise", "all windows have one divisor",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], padding = [1,1], count_include_pad = false} : f32[1,1,2,2]
})"},
          {"average_rows_then_columns", "the window is larger than 1 both ways, and no axis is empty",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,1]} : f32[1,1,1,3]
})"},
          {"average_rows_then_columns", "every window's divisor is its size",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], divisor_override = 3} : f32[1,1,1,1]
})"},
          {"maximum_rows_then_columns", "the window is larger than 1 both ways, and no axis is empty",
           R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [2,1]} : f32[1,1,1,3]
})"},
          {"average_of_averages", "the windows tile the image without padding, and a side of them is no prime",
           R"(graph @g {stage = canonical} (%x: f32[1,1,7,7]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [7,7]} : f32[1,1,1,1]
})"},
          {"average_of_averages", "the windows tile the image without padding, and a side of them is no prime",
           R"(graph @g {stage = canonical} (%x: f32[1,1,6,6]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [4,4], stride = [1,1]} : f32[1,1,3,3]
})"},
          {"adaptive_as_average", "the output divides the image, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[1,1,7,7]) -> (%y) {
  %y = adaptive_avg_pool2d(%x) {output_size = [2,2]} : f32[1,1,2,2]
})"},
          {"largest_as_pool",
           "x is real or i8 at the scale of the result, and it is over height and width of an image of fixed size",
           R"(graph @g {stage = canonical} (%x: i8{0.03125}[1,2,3,4]) -> (%y) {
  %y = reduce_max(%x) {axes = [2,3], q_scale = [0.0625]} : i8{0.0625}[1,2]
})"},
          {"least_as_pool",
           "x is real or i8 at the scale of the result, and it is over height and width of an image of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[1,2,3,4]) -> (%y) {
  %y = reduce_min(%x) {axes = [1,2]} : f32[1,4]
})"},
          {"mean_as_average", "the mean is over height and width of an image of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[1,2,3,4]) -> (%y) {
  %y = mean(%x) {axes = [2]} : f32[1,2,4]
})"},
          {"mean_as_linear", "the mean is over the last axis, of fixed size",
           R"(graph @g {stage = canonical} (%x: f32[1,2,3]) -> (%y) {
  %y = mean(%x) {axes = [1]} : f32[1,3]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
