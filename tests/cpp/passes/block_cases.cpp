// Weights in blocks, multiplied by as they are kept.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& block_cases() {
  static const Cases cases = {
      .fires =
          {
              {"blocks_turned", R"(graph @g {stage = imported} () -> (%y) {
  %w = constant() {value = i8[2,3,1] {1, -2, 3, 4, 5, -6}} : i8[2,3,1]
  %s = constant() {value = f32[1,3,1] {0.5, 0.25, 2}} : f32[1,3,1]
  %z = constant() {value = i8[1,3,1] {1, 0, -3}} : i8[1,3,1]
  %d = dequantize_blocks(%w, %s, %z) {axis = 0, block = 2} : f32[2,3,1]
  %y = permute(%d) {perm = [2,0,1]} : f32[1,2,3]
})",
               "dequantize_blocks", 0, Values::random},
              {"product_of_blocks", R"(graph @g {stage = imported} (%x: f32[4,3]) -> (%y) {
  %w = constant() {value = i8[3,2] {1, -2, 3, 4, 5, -6}} : i8[3,2]
  %s = constant() {value = f32[2,2] {0.5, 0.25, 2, 1}} : f32[2,2]
  %d = dequantize_blocks(%w, %s) {axis = 0, block = 2} : f32[3,2]
  %y = matmul(%x, %d) : f32[4,2]
})",
               "dequantize_blocks linear", 1e-6, Values::random},
              {"linear_of_blocks", R"(graph @g {stage = imported} (%x: f32[4,18], %b: f32[2]) -> (%y) {
  %w = constant() {value = i8[2,18] {1, -2, 3, 4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 127, -128, 1, -2, 3, 4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 127, -128}} : i8[2,18]
  %s = constant() {value = f32[2,2] {0.5, 0.25, 2, 1}} : f32[2,2]
  %z = constant() {value = i8[2,2] {3, -128, 127, 0}} : i8[2,2]
  %d = dequantize_blocks(%w, %s, %z) {axis = 1, block = 16} : f32[2,18]
  %y = linear(%x, %d, %b) : f32[4,2]
})",
               "block_linear", 1e-6, Values::random},
              {"linear_of_blocks", R"(graph @g {stage = imported} (%x: f32[4,3]) -> (%y) {
  %w = constant() {value = u4[2,3] "AQIDDwAH"} : u4[2,3]
  %s = constant() {value = f32[2,1] {0.1, -0.3}} : f32[2,1]
  %d = dequantize_blocks(%w, %s) {block = 32} : f32[2,3]
  %y = linear(%x, %d) : f32[4,2]
})",
               "block_linear", 1e-6, Values::random},
              {"linear_of_blocks", R"(graph @g {stage = imported} (%x: f32[4,3]) -> (%y) {
  %w = constant() {value = i2[2,3] "AQIAAwEB"} : i2[2,3]
  %s = constant() {value = f32[2,1] {0.1, 0}} : f32[2,1]
  %d = dequantize_blocks(%w, %s) {block = 16} : f32[2,3]
  %y = linear(%x, %d) : f32[4,2]
})",
               "block_linear", 1e-6, Values::random},
              // Blocks that are too large are several; of 48 there are three of 16.
              {"linear_of_blocks", R"(graph @g {stage = imported} (%x: f32[2,50]) -> (%y) {
  %w = constant() {value = u8[1,50] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 248, 249, 250}} : u8[1,50]
  %s = constant() {value = f32[1,2] {0.5, -2}} : f32[1,2]
  %z = constant() {value = f32[1,2] {3, 128}} : f32[1,2]
  %d = dequantize_blocks(%w, %s, %z) {block = 48} : f32[1,50]
  %y = linear(%x, %d) : f32[2,1]
})",
               "block_linear", 1e-6, Values::random},
              {"rows_of_blocks", R"(graph @g {stage = imported} (%x: i8[4,2,6], %s: f32[4,2,2], %z: i8[4,2,2]) -> (%y) {
  %i = constant() {value = i64[2,1] {3, -4}} : i64[2,1]
  %d = dequantize_blocks(%x, %s, %z) {block = 4} : f32[4,2,6]
  %y = gather(%d, %i) : f32[2,1,2,6]
})",
               "gather gather gather dequantize_blocks", 0, Values::random},
              {"rows_of_blocks", R"(graph @g {stage = imported} (%x: i8[4,2,6], %s: f32[2,2,6]) -> (%y) {
  %i = constant() {value = i64[] {5}} : i64[]
  %d = dequantize_blocks(%x, %s) {axis = 0, block = 2} : f32[4,2,6]
  %y = gather(%d, %i) {axis = -1} : f32[4,2]
})",
               "gather gather dequantize_blocks", 0, Values::random},
          },
      .refuses = {
          {"product_of_blocks", "w is a matrix, and x has two axes or more",
           R"(graph @g {stage = imported} (%x: f32[1,4,3]) -> (%y) {
  %w = constant() {value = i8[1,3,2] {1, -2, 3, 4, 5, -6}} : i8[1,3,2]
  %s = constant() {value = f32[1,2,2] {0.5, 0.25, 2, 1}} : f32[1,2,2]
  %d = dequantize_blocks(%w, %s) {axis = 1, block = 2} : f32[1,3,2]
  %y = matmul(%x, %d) : f32[1,4,2]
})"},
          {"linear_of_blocks", "x is of the type of the scales", R"(graph @g {stage = imported} (%x: f32[4,3]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, 2, 3, 15, 0, 7}} : i8[2,3]
  %s = constant() {value = f16[2,1] "ADgAQA=="} : f16[2,1]
  %d = dequantize_blocks(%w, %s) {block = 32} : f16[2,3]
  %y = linear(%x, %d) : f32[4,2]
})"},
          {"linear_of_blocks",
           "the weights are of 2, 4 or 8 bits, in blocks along the last axis, of a multiple of 16 or a row each",
           R"(graph @g {stage = imported} (%x: f32[4,3]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, 2, 3, 15, 0, 7}} : i8[2,3]
  %s = constant() {value = f32[2,2] {0.5, 2, 3, 4}} : f32[2,2]
  %d = dequantize_blocks(%w, %s) {block = 2} : f32[2,3]
  %y = linear(%x, %d) : f32[4,2]
})"},
          {"linear_of_blocks", "zero points are constants",
           R"(graph @g {stage = imported} (%x: f32[4,3], %z: i8[2,1]) -> (%y) {
  %w = constant() {value = i8[2,3] {1, 2, 3, 15, 0, 7}} : i8[2,3]
  %s = constant() {value = f32[2,1] {0.5, 2}} : f32[2,1]
  %d = dequantize_blocks(%w, %s, %z) {block = 32} : f32[2,3]
  %y = linear(%x, %d) : f32[4,2]
})"},
          {"rows_of_blocks", "what is gathered lies along another axis than the blocks",
           R"(graph @g {stage = imported} (%x: i8[4,6], %s: f32[4,2]) -> (%y) {
  %i = constant() {value = i64[1] {5}} : i64[1]
  %d = dequantize_blocks(%x, %s) {block = 4} : f32[4,6]
  %y = gather(%d, %i) {axis = 1} : f32[4,1]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
