// Transposition of four-byte elements, compiled once per instruction set: squares of eight in registers where vectors
// have eight lanes, squares in the first-level cache elsewhere.
#if defined(HETNN_KERNELS_MOVE_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_MOVE_TRANSPOSE_INL_H_
#undef HETNN_KERNELS_MOVE_TRANSPOSE_INL_H_
#else
#define HETNN_KERNELS_MOVE_TRANSPOSE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using SquareTag = hn::CappedTag<float, 8>;
constexpr int64_t kSide = 8;

HWY_INLINE void TransposeEach(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows,
                              int64_t cols) {
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_ld + i] = from[i * from_ld + j];
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Pairs of rows, then of pairs, within each half of a vector, then the halves.
HWY_INLINE void TransposeSquare(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  using V = hn::Vec<SquareTag>;
  const SquareTag d;
  const hn::Repartition<double, SquareTag> wide;
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

// Eight rows of four.
HWY_INLINE void TransposeFours(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> wide;
  for (int64_t i = 0; i < kSide; i += 4) {
    const auto load = [&](int64_t k) HWY_ATTR { return hn::LoadU(d, from + (i + k) * from_ld); };
    const auto a = load(0), b = load(1), c = load(2), e = load(3);
    const auto ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
               ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
    const auto up_ab = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
    const auto up_ce = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab, ce)), d, to + i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce)), d, to + to_ld + i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, up_ab, up_ce)), d, to + 2 * to_ld + i);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, up_ab, up_ce)), d, to + 3 * to_ld + i);
  }
}
#else
HWY_INLINE void TransposeFours(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  TransposeEach(from, from_ld, to, to_ld, kSide, 4);
}
HWY_INLINE void TransposeSquare(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  TransposeEach(from, from_ld, to, to_ld, kSide, kSide);
}
#endif

/// to[j, i] = from[i, j] of rows x cols; `ld`s are elements from one row to the next.
HWY_INLINE void Transpose(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  // Two squares fill a cache line of what is read, and of what is written.
  constexpr int64_t kBlock = 2 * kSide;
  const auto square = [&](int64_t i, int64_t j) {
    const float* at = from + i * from_ld + j;
    float* out = to + j * to_ld + i;
    if (i + kSide <= rows && j + kSide <= cols) {
      TransposeSquare(at, from_ld, out, to_ld);
    } else if (i + kSide <= rows && j + 4 <= cols) {
      TransposeFours(at, from_ld, out, to_ld);
      TransposeEach(at + 4, from_ld, out + 4 * to_ld, to_ld, kSide, cols - j - 4);
    } else {
      TransposeEach(at, from_ld, out, to_ld, std::min(kSide, rows - i), std::min(kSide, cols - j));
    }
  };
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (int64_t j0 = 0; j0 < cols; j0 += kBlock) {
      for (int64_t j = j0; j < std::min(cols, j0 + kBlock); j += kSide)
        for (int64_t i = i0; i < std::min(rows, i0 + kBlock); i += kSide) square(i, j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_MOVE_TRANSPOSE_INL_H_
