// Neighbours in one.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& merging_cases() {
  static const Cases cases = {{
                                  {"branch_into_producer", R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[2,1,2,1] {-2.5, 1.0, -1.0, 2.5}} : f32[2,1,2,1]
  %d = constant() {value = f32[2,1,1,1] {3, -0.5}} : f32[2,1,1,1]
  %e = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = conv2d(%x, %w) : f32[1,2,2,3]
  %t = conv2d(%c, %d, %e) {groups = 2} : f32[1,2,2,3]
  %r = relu(%t) : f32[1,2,2,3]
  %y = add(%c, %r) : f32[1,2,2,3]
})",
                                   "conv2d slice slice relu add", 1e-6, Values::edge},
                                  {"function_between_reshapes",
                                   R"(graph @g {stage = canonical} (%x: i8{0.5:1}[6,4]) -> (%y) {
  %s = reshape(%x) {shape = [3,8]} : i8{0.5:1}[3,8]
  %f = relu(%s) {q_scale = [0.5], q_zero = 1} : i8{0.5:1}[3,8]
  %y = reshape(%f) {shape = [12,2]} : i8{0.5:1}[12,2]
})",
                                   "relu reshape", 0, Values::random},
                                  {"permute_without_ones",
                                   R"(graph @g {stage = canonical} (%x: i8{0.5:1}[6,4]) -> (%y) {
  %s = reshape(%x) {shape = [1,6,2,2]} : i8{0.5:1}[1,6,2,2]
  %p = permute(%s) {perm = [0,2,1,3]} : i8{0.5:1}[1,2,6,2]
  %y = reshape(%p) {shape = [12,2]} : i8{0.5:1}[12,2]
})",
                                   "reshape permute reshape", 0, Values::random},
                              },
                              {
                                  {"function_between_reshapes", "quantized values have one scale",
                                   R"(graph @g {stage = canonical} (%x: i8{0.5,0.25}[2,4]) -> (%y) {
  %s = reshape(%x) {shape = [2,2,2], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,2,2]
  %f = relu(%s) {q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,2,2]
  %y = reshape(%f) {shape = [2,4], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,4]
})"},
                                  {"permute_without_ones", "an axis that is permuted has one element",
                                   R"(graph @g {stage = canonical} (%x: f32[6,4]) -> (%y) {
  %s = reshape(%x) {shape = [2,3,4]} : f32[2,3,4]
  %p = permute(%s) {perm = [1,0,2]} : f32[3,2,4]
  %y = reshape(%p) {shape = [6,4]} : f32[6,4]
})"},
                                  {"permute_without_ones", "quantized values have one scale",
                                   R"(graph @g {stage = canonical} (%x: i8{0.5,0.25}[2,4]) -> (%y) {
  %s = reshape(%x) {shape = [2,1,4], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,1,4]
  %p = permute(%s) {perm = [0,2,1], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,4,1]
  %y = reshape(%p) {shape = [2,4], q_scale = [0.5,0.25]} : i8{0.5,0.25}[2,4]
})"},
                                  {"branch_into_producer", "the weights are real",
                                   R"(graph @g {stage = canonical} (%x: i32[1,1,1,1]) -> (%y) {
  %w = constant() {value = i32[1,1,1,1] {1}} : i32[1,1,1,1]
  %c = conv2d(%x, %w) : i32[1,1,1,1]
  %y = conv2d(%c, %w) : i32[1,1,1,1]
})"},
                                  {"branch_into_producer", "the second is 1x1 depthwise, stride 1, no padding",
                                   R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[2,1,2,1] {-2.5, 1.0, -1.0, 2.5}} : f32[2,1,2,1]
  %d = constant() {value = f32[2,2,1,1] {1, 2, 3, 4}} : f32[2,2,1,1]
  %e = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = conv2d(%x, %w) : f32[1,2,2,3]
  %t = conv2d(%c, %d, %e) {groups = 1} : f32[1,2,2,3]
  %r = relu(%t) : f32[1,2,2,3]
  %y = add(%c, %r) : f32[1,2,2,3]
})"},
                                  {"branch_into_producer", "the first is not grouped",
                                   R"(graph @g {stage = canonical} (%x: f32[1,2,2,3]) -> (%y) {
  %w = constant() {value = f32[2,1,1,1] {1, 2}} : f32[2,1,1,1]
  %d = constant() {value = f32[2,1,1,1] {3, -0.5}} : f32[2,1,1,1]
  %e = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = conv2d(%x, %w) {groups = 2} : f32[1,2,2,3]
  %t = conv2d(%c, %d, %e) {groups = 2} : f32[1,2,2,3]
  %r = relu(%t) : f32[1,2,2,3]
  %y = add(%c, %r) : f32[1,2,2,3]
})"},
                                  {"branch_into_producer", "the first has other readers",
                                   R"(graph @g {stage = canonical} (%x: f32[1,1,3,3]) -> (%y) {
  %w = constant() {value = f32[2,1,2,1] {-2.5, 1.0, -1.0, 2.5}} : f32[2,1,2,1]
  %d = constant() {value = f32[2,1,1,1] {3, -0.5}} : f32[2,1,1,1]
  %e = constant() {value = f32[2] {1, 2}} : f32[2]
  %c = conv2d(%x, %w) : f32[1,2,2,3]
  %t = conv2d(%c, %d, %e) {groups = 2} : f32[1,2,2,3]
  %r = relu(%t) : f32[1,2,2,3]
  %y = add(%r, %r) : f32[1,2,2,3]
})"},
                              }};
  return cases;
}

}  // namespace hetnn::passes
