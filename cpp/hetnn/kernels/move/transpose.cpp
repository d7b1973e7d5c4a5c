// Squares of eight in registers where vectors have eight lanes, squares in the first-level cache elsewhere.
#include "hetnn/kernels/move/transpose.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/move/transpose.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 8>;
constexpr int64_t kSide = 8;

void Scalar(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_ld + i] = from[i * from_ld + j];
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Pairs of rows, then of pairs, within each half of a vector, then the halves.
HWY_INLINE void Square(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  using V = hn::Vec<Tag>;
  const Tag d;
  const hn::Repartition<double, Tag> wide;
  V row[kSide], pairs[kSide], fours[kSide];
  for (int64_t i = 0; i < kSide; ++i) row[i] = hn::LoadU(d, from + i * from_ld);
  for (int64_t i = 0; i < kSide; i += 2) {
    pairs[i] = hn::InterleaveLower(d, row[i], row[i + 1]);
    pairs[i + 1] = hn::InterleaveUpper(d, row[i], row[i + 1]);
  }
  for (int64_t i = 0; i < kSide; i += 4) {
    for (int64_t k = 0; k < 2; ++k) {
      const auto low = hn::BitCast(wide, pairs[i + k]), high = hn::BitCast(wide, pairs[i + k + 2]);
      fours[i + 2 * k] = hn::BitCast(d, hn::InterleaveLower(wide, low, high));
      fours[i + 2 * k + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, low, high));
    }
  }
  for (int64_t j = 0; j < 4; ++j) {
    hn::StoreU(hn::ConcatLowerLower(d, fours[j + 4], fours[j]), d, to + j * to_ld);
    hn::StoreU(hn::ConcatUpperUpper(d, fours[j + 4], fours[j]), d, to + (j + 4) * to_ld);
  }
}
#else
HWY_INLINE void Square(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  Scalar(from, from_ld, to, to_ld, kSide, kSide);
}
#endif

void Transpose(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  // Two squares fill a cache line of what is written.
  constexpr int64_t kBlock = 2 * kSide;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (int64_t j = 0; j < cols; j += kSide) {
      for (int64_t i = i0; i < std::min(rows, i0 + kBlock); i += kSide) {
        const float* at = from + i * from_ld + j;
        float* out = to + j * to_ld + i;
        if (i + kSide <= rows && j + kSide <= cols) {
          Square(at, from_ld, out, to_ld);
        } else {
          Scalar(at, from_ld, out, to_ld, std::min(kSide, rows - i), std::min(kSide, cols - j));
        }
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
void transpose(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  HETNN_CHOSEN(Transpose)(from, from_ld, to, to_ld, rows, cols);
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
