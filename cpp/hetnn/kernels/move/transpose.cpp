// Transposition by the instruction set in use.
#include "hetnn/kernels/move/transpose.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/move/transpose.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/move/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {
void TransposeAll(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  Transpose(from, from_ld, to, to_ld, rows, cols);
}
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
void transpose(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  HETNN_CHOSEN(TransposeAll)(from, from_ld, to, to_ld, rows, cols);
}

void transpose(const int8_t* from, int64_t from_ld, int8_t* to, int64_t to_ld, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 64;  // a line of each row and column
  for (int64_t j0 = 0; j0 < cols; j0 += kBlock)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = j0; j < std::min(cols, j0 + kBlock); ++j) to[j * to_ld + i] = from[i * from_ld + j];
}

// Squares with room for four bytes an element, whose transposition is vectorized.
void transpose(const uint16_t* from, int64_t from_ld, uint16_t* to, int64_t to_ld, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 32;
  float read[kBlock * kBlock], turned[kBlock * kBlock];
  const auto turn = HETNN_CHOSEN(TransposeAll);
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (int64_t j0 = 0; j0 < cols; j0 += kBlock) {
      const int64_t height = std::min(kBlock, rows - i0), width = std::min(kBlock, cols - j0);
      for (int64_t i = 0; i < height; ++i) {
        const uint16_t* line = from + (i0 + i) * from_ld + j0;
        for (int64_t j = 0; j < width; ++j) read[i * kBlock + j] = line[j];
      }
      turn(read, kBlock, turned, kBlock, height, width);
      for (int64_t j = 0; j < width; ++j) {
        uint16_t* line = to + (j0 + j) * to_ld + i0;
        for (int64_t i = 0; i < height; ++i)
          line[i] = static_cast<uint16_t>(static_cast<int32_t>(turned[j * kBlock + i]));
      }
    }
  }
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
