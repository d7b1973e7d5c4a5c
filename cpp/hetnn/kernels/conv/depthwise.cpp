// Depthwise convolution tiles for each instruction set.
#include "hetnn/kernels/conv/sliding_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/depthwise.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

// One vector of channels of kPixels outputs of each of kRows rows. With kWidth and kStep given, the loads of
// neighbouring windows coincide and are shared, and columns outside the image are zeros, unless all are inside.
template <int kRows, int kPixels, int kWidth, int kStep, bool kTail, bool kInside>
HWY_INLINE void DepthwiseVector(const SlidingTile& t, int64_t channel, size_t lanes) {
  const DF d;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? LoadFirst(p, lanes) : hn::LoadU(d, p); };
  const float* weights = t.panels + channel / 16 * t.panel_stride + channel % 16;
  VF acc[kRows][kPixels];
  const VF start = t.bias == nullptr ? hn::Zero(d) : load(t.bias + channel);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) acc[r][p] = start;
  }
  for (int64_t ky = t.ky_begin; ky < t.ky_end; ++ky) {
    const float* in = t.in + ky * t.ky_stride + channel;
    if constexpr (kWidth > 0 && kStep > 0) {
      constexpr int kColumns = (kPixels - 1) * kStep + kWidth;
      VF x[kColumns];
#pragma GCC unroll 32
      for (int i = 0; i < kColumns; ++i)
        x[i] = !kInside && (i < t.kx_begin || i >= t.kx_end) ? hn::Zero(d) : load(in + i * t.kx_stride);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        if (kRows > 1 && (ky < r || ky - r >= t.kernel_h)) continue;
        const float* w = weights + (ky - r) * kWidth * 16;
#pragma GCC unroll 8
        for (int kx = 0; kx < kWidth; ++kx) {
          const VF weight = hn::Load(d, w + kx * 16);
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p) acc[r][p] = hn::MulAdd(x[p * kStep + kx], weight, acc[r][p]);
        }
      }
    } else {
      static_assert(kRows == 1);
      const float* w = weights + ky * t.kernel_w * 16;
      const int64_t begin = kWidth > 0 ? 0 : t.kx_begin;
      const int64_t end = kWidth > 0 ? kWidth : t.kx_end;
      for (int64_t kx = begin; kx < end; ++kx) {
        const VF weight = hn::Load(d, w + kx * 16);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p)
          acc[0][p] = hn::MulAdd(load(in + kx * t.kx_stride + p * t.pixel_stride), weight, acc[0][p]);
      }
    }
  }
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
  const VF slopes = t.slopes == nullptr ? hn::Zero(d)
                    : t.slope_step == 0 ? hn::Set(d, *t.slopes)
                                        : load(t.slopes + channel);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      const VF sum = t.slopes == nullptr ? acc[r][p] : Sloped(acc[r][p], slopes);
      const VF y = AtMost(hi, AtLeast(lo, sum));
      float* out = t.out + r * t.out_row + p * t.ld_out + channel;
      if (kTail) {
        StoreFirst(y, out, lanes);
      } else {
        hn::StoreU(y, d, out);
      }
    }
  }
}

template <int kRows, int kPixels, int kWidth, int kStep>
void Depthwise(const SlidingTile& t) {
  int64_t channel = 0;
  // Of short vectors asking for each column takes longer than the products.
  constexpr bool kAsksOnce = HWY_TARGET == HWY_AVX2 && kWidth > 0 && kStep > 0;
  if (kAsksOnce && t.kx_begin == 0 && t.kx_end == (kPixels - 1) * kStep + kWidth) {
    for (; channel + kLanes <= t.channels; channel += kLanes)
      DepthwiseVector<kRows, kPixels, kWidth, kStep, false, true>(t, channel, kLanes);
  }
  for (; channel + kLanes <= t.channels; channel += kLanes)
    DepthwiseVector<kRows, kPixels, kWidth, kStep, false, false>(t, channel, kLanes);
  if (channel < t.channels) {
    DepthwiseVector<kRows, kPixels, kWidth, kStep, true, false>(t, channel, static_cast<size_t>(t.channels - channel));
  }
}

constexpr int kPixels = 4;

// Two rows of sums and what they read need more registers than 16, as do seven pixels.
template <int kCount, int kWidth, int kStep>
void SetSideBySide(SlidingFunctions& functions) {
  functions.uncut = &Depthwise<1, kCount, kWidth, kStep>;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
  if constexpr (kStep == 1) functions.pair = &Depthwise<2, kCount, kWidth, kStep>;
#endif
  functions.pixels = kCount;
  functions.columns = (kCount - 1) * kStep + kWidth;
}

// Tiles of the size that takes less time, the last of a row with some pixels of the one before it.
template <int kWidth, int kStep>
SlidingFunctions SideBySide(SlidingFunctions functions, int64_t width) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
  // A tile takes as long as one and a half pixels more.
  if (width >= 7 && (width + 6) / 7 * 17 < (width + 3) / 4 * 11) {
    SetSideBySide<7, kWidth, kStep>(functions);
    return functions;
  }
#endif
  if (width >= kPixels) SetSideBySide<kPixels, kWidth, kStep>(functions);
  return functions;
}

SlidingFunctions Functions(int64_t kernel_w, int64_t step, int64_t width) {
  SlidingFunctions functions{&Depthwise<1, 1, 0, 0>, &Depthwise<1, kPixels, 0, 0>, kPixels};
  if (kernel_w == 3 && step == 1) return SideBySide<3, 1>(functions, width);
  if (kernel_w == 5 && step == 1) return SideBySide<5, 1>(functions, width);
  if (kernel_w == 7 && step == 1) return SideBySide<7, 1>(functions, width);
  if (kernel_w == 3 && step == 2) return SideBySide<3, 2>(functions, width);
  if (kernel_w == 5 && step == 2) return SideBySide<5, 2>(functions, width);
  if (kernel_w == 3) functions.uncut = &Depthwise<1, kPixels, 3, 0>;
  return functions;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
SlidingFunctions depthwise_functions(int64_t kernel_w, int64_t step, int64_t width) {
  return HETNN_CHOSEN(Functions)(kernel_w, step, width);
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
