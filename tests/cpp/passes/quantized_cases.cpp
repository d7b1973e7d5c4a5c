// Rules for i8: scales that differ, slopes of every sign, bounds inside and outside the range, functions as tables.
#include "rule_cases.h"

namespace hetnn::passes {
namespace {

constexpr std::string_view kReals = "operands and result are i8 with scales, and the number of channels is fixed";
constexpr std::string_view kRescaled = "an operand has another scale than the result";

constexpr std::string_view kMixed = R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,6,3,2]) -> (%y) {
  %a = constant() {value = i8[6] {-128, -40, 0, 32, 64, 127}, q_scale = [0.015625]} : i8{0.015625}[6]
  %y = prelu(%x, %a) {q_scale = [0.0625], q_zero = 5} : i8{0.0625:5}[2,6,3,2]
})";

}  // namespace

const Cases& quantized_cases() {
  static const Cases cases = {
      {
          {"rescale_as_depthwise", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,3,4]) -> (%y) {
  %y = identity(%x) {q_scale = [0.0625], q_zero = 5} : i8{0.0625:5}[2,3,4]
})",
           "reshape conv2d reshape"},
          {"relu_after_rescale", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,3,4,1]) -> (%y) {
  %y = relu(%x) {q_scale = [0.0625], q_zero = -128} : i8{0.0625:-128}[2,3,4,1]
})",
           "identity relu"},
          {"rescale_after_pool", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[1,3,4,4]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [2,2], q_scale = [0.0625]} : i8{0.0625}[1,3,2,2]
})",
           "max_pool2d identity"},
          {"mean_as_depthwise", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[1,3,4,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], stride = [2,2], q_scale = [0.0625]} : i8{0.0625}[1,3,2,2]
})",
           "conv2d"},
          {"mean_as_depthwise", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[1,3,4,6]) -> (%y) {
  %y = adaptive_avg_pool2d(%x) {output_size = [1,2], q_scale = [0.0625], q_zero = 3} : i8{0.0625:3}[1,3,1,2]
})",
           "conv2d"},
          {"mean_as_product", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,3,4,4]) -> (%y) {
  %y = adaptive_avg_pool2d(%x) {output_size = [1,1], q_scale = [0.0625], q_zero = 3} : i8{0.0625:3}[2,3,1,1]
})",
           "permute reshape matmul reshape"},
          {"concat_after_rescale",
           R"(graph @g {stage = canonical} (%a: i8{0.03125:-9}[1,3,4,4], %b: i8{0.0625}[1,2,4,4]) -> (%y) {
  %y = concat(%a, %b) {axis = 1, q_scale = [0.0625]} : i8{0.0625}[1,5,4,4]
})",
           "identity concat"},
          {"sum_as_depthwise", R"(graph @g {stage = canonical} (
      %a: i8{0.0625:-9}[2,3,4,5], %b: i8{0.0625:-9}[2,3,4,5], %c: i8{0.0625:-9}[2,3,4,5]) -> (%y) {
  %y = nary(%a, %b, %c) {coefficients = [1.0, -2.0, 3.0], q_scale = [0.25], q_zero = 5} : i8{0.25:5}[2,3,4,5]
})",
           "reshape reshape reshape concat conv2d reshape"},
          {"prelu_quantized_branches", kMixed, "conv2d conv2d conv2d add conv2d add"},
          {"prelu_quantized_branches", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[5,4]) -> (%y) {
  %a = constant() {value = i8[1] {32}, q_scale = [0.015625]} : i8{0.015625}[1]
  %y = prelu(%x, %a) {q_scale = [0.03125], q_zero = 5} : i8{0.03125:5}[5,4]
})",
           "reshape conv2d reshape reshape conv2d reshape reshape conv2d reshape add"},
          {"prelu_quantized_branches", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[5,4,1,1]) -> (%y) {
  %a = constant() {value = i8[1] {0}, q_scale = [0.015625]} : i8{0.015625}[1]
  %y = prelu(%x, %a) {q_scale = [0.03125], q_zero = 5} : i8{0.03125:5}[5,4,1,1]
})",
           "conv2d relu"},
          {"leaky_relu_quantized", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,3,4,1]) -> (%y) {
  %y = leaky_relu(%x) {negative_slope = 0.25, q_scale = [0.0625]} : i8{0.0625}[2,3,4,1]
})",
           "prelu"},
          {"abs_quantized", R"(graph @g {stage = canonical} (%x: i8{0.03125:-9}[2,3,4,1]) -> (%y) {
  %y = abs(%x) {q_scale = [0.0625], q_zero = -128} : i8{0.0625:-128}[2,3,4,1]
})",
           "prelu"},
          {"clamp_by_saturation", R"(graph @g {stage = canonical} (%x: i8{0.0625:-9}[2,3,4,1]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 6, q_scale = [0.03125], q_zero = -20} : i8{0.03125:-20}[2,3,4,1]
})",
           "conv2d conv2d"},
          {"clamp_by_saturation", R"(graph @g {stage = canonical} (%x: i8{0.0625:-9}[2,3,4,1]) -> (%y) {
  %y = clamp(%x) {min = -1, max = 1, q_scale = [0.03125], q_zero = -20} : i8{0.03125:-20}[2,3,4,1]
})",
           "conv2d conv2d conv2d"},
          {"function_as_table", R"(graph @g {stage = canonical} (%x: i8{0.0625:-9}[2,3,4,1]) -> (%y) {
  %y = gelu(%x) {q_scale = [0.03125], q_zero = -20} : i8{0.03125:-20}[2,3,4,1]
})",
           "lookup"},
          {"function_as_table", R"(graph @g {stage = canonical} (%x: i8{0.0625:-9}[2,3]) -> (%y) {
  %c = constant() {value = i8[] {-3}, q_scale = [0.5]} : i8{0.5}[]
  %y = mul(%c, %x) {q_scale = [0.03125], q_zero = -20} : i8{0.03125:-20}[2,3]
})",
           "lookup"},
          {"function_as_table", R"(graph @g {stage = canonical} (%x: i8{0.0625:-9}[2,3]) -> (%y) {
  %y = identity(%x) {q_scale = [0.03125], q_zero = -20} : i8{0.03125:-20}[2,3]
})",
           "lookup"},
      },
      {
          {"sum_as_depthwise", kReals, R"(graph @g {stage = canonical} (%a: f32[2,3,4,5], %b: f32[2,3,4,5]) -> (%y) {
  %y = nary(%a, %b) : f32[2,3,4,5]
})"},
          {"sum_as_depthwise", "it is a sum of images of one type, with whole coefficients up to 127",
           R"(graph @g {stage = canonical} (%a: i8{0.0625}[2,3,4,5], %b: i8{0.0625}[2,3,4,5]) -> (%y) {
  %y = nary(%a, %b) {coefficients = [1.0, 0.5], q_scale = [0.25]} : i8{0.25}[2,3,4,5]
})"},
          {"sum_as_depthwise", "it is a sum of images of one type, with whole coefficients up to 127",
           R"(graph @g {stage = canonical} (%a: i8{0.0625}[2,3,4,5], %b: i8{0.25}[2,3,4,5]) -> (%y) {
  %y = nary(%a, %b) {q_scale = [0.25]} : i8{0.25}[2,3,4,5]
})"},
          {"rescale_as_depthwise", kReals, R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = identity(%x) : f32[2,3]
})"},
          {"rescale_as_depthwise", kRescaled, R"(graph @g {stage = canonical} (%x: i8{0.5}[2,3]) -> (%y) {
  %y = identity(%x) : i8{0.5}[2,3]
})"},
          {"relu_after_rescale", kReals, R"(graph @g {stage = canonical} (%x: i8[2,3]) -> (%y) {
  %y = relu(%x) : i8[2,3]
})"},
          {"relu_after_rescale", kRescaled, R"(graph @g {stage = canonical} (%x: i8{0.5}[2,3]) -> (%y) {
  %y = relu(%x) {q_scale = [0.5]} : i8{0.5}[2,3]
})"},
          {"mean_as_depthwise", kReals, R"(graph @g {stage = canonical} (%x: f32[1,1,4,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2]} : f32[1,1,2,2]
})"},
          {"mean_as_depthwise", kRescaled, R"(graph @g {stage = canonical} (%x: i8{0.5}[1,1,4,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], q_scale = [0.5]} : i8{0.5}[1,1,2,2]
})"},
          {"mean_as_depthwise", "all windows have one divisor",
           R"(graph @g {stage = canonical} (%x: i8{0.5}[1,1,4,4]) -> (%y) {
  %y = adaptive_avg_pool2d(%x) {output_size = [3,3], q_scale = [0.25]} : i8{0.25}[1,1,3,3]
})"},
          {"mean_as_product", kReals, R"(graph @g {stage = canonical} (%x: f32[1,1,4,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [4,4]} : f32[1,1,1,1]
})"},
          {"mean_as_product", kRescaled, R"(graph @g {stage = canonical} (%x: i8{0.5}[1,1,4,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [4,4], q_scale = [0.5]} : i8{0.5}[1,1,1,1]
})"},
          {"mean_as_product", "the size of the image is fixed, and all of it becomes one pixel",
           R"(graph @g {stage = canonical} (%x: i8{0.5}[1,1,4,4]) -> (%y) {
  %y = avg_pool2d(%x) {kernel = [2,2], q_scale = [0.25]} : i8{0.25}[1,1,2,2]
})"},
          {"rescale_after_pool", kReals, R"(graph @g {stage = canonical} (%x: f32[1,1,4,4]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [2,2]} : f32[1,1,2,2]
})"},
          {"rescale_after_pool", kRescaled, R"(graph @g {stage = canonical} (%x: i8{0.5}[1,1,4,4]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [2,2], q_scale = [0.5]} : i8{0.5}[1,1,2,2]
})"},
          {"concat_after_rescale", kReals, R"(graph @g {stage = canonical} (%x: f32[1,1]) -> (%y) {
  %y = concat(%x, %x) {axis = 1} : f32[1,2]
})"},
          {"concat_after_rescale", kRescaled, R"(graph @g {stage = canonical} (%x: i8{0.5}[1,1]) -> (%y) {
  %y = concat(%x, %x) {axis = 1} : i8{0.5}[1,2]
})"},
          {"prelu_quantized_branches", kReals, R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %a = constant() {value = f32[1] {0.25}} : f32[1]
  %y = prelu(%x, %a) : f32[2,3]
})"},
          {"leaky_relu_quantized", kReals, R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = leaky_relu(%x) : f32[2,3]
})"},
          {"abs_quantized", kReals, R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = abs(%x) : f32[2,3]
})"},
          {"clamp_by_saturation", kReals, R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = clamp(%x) {min = 0, max = 6} : f32[2,3]
})"},
          {"clamp_by_saturation", "lo <= 0 <= hi", R"(graph @g {stage = canonical} (%x: i8{0.5}[2,3]) -> (%y) {
  %y = clamp(%x) {min = 1, max = 6, q_scale = [0.5]} : i8{0.5}[2,3]
})"},
          {"function_as_table", "operands and result are i8 with one scale each, all operands but one being numbers",
           R"(graph @g {stage = canonical} (%x: i8{0.1:1}[2,3]) -> (%y) {
  %y = identity(%x) {q_scale = [0.1,0.2], q_axis = 0} : i8{0.1,0.2}[2,3]
})"},
          {"function_as_table", "operands and result are i8 with one scale each, all operands but one being numbers",
           R"(graph @g {stage = canonical} (%x: f32[2,3]) -> (%y) {
  %y = sigmoid(%x) : f32[2,3]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
