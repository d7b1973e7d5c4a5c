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

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
