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

// One vector of channels of kPixels outputs. With kWidth and kUnitStep given, the loads of neighbouring windows
// coincide and are shared.
template <int kPixels, int kWidth, bool kUnitStep, bool kTail>
HWY_INLINE void DepthwiseVector(const SlidingTile& t, int64_t channel, size_t lanes) {
  const DF d;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? LoadFirst(p, lanes) : hn::LoadU(d, p); };
  const float* weights = t.panels + channel / 16 * t.panel_stride + channel % 16;
  VF acc[kPixels];
  const VF start = t.bias == nullptr ? hn::Zero(d) : load(t.bias + channel);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) acc[p] = start;
  for (int64_t ky = t.ky_begin; ky < t.ky_end; ++ky) {
    const float* in = t.in + ky * t.ky_stride + channel;
    const float* w = weights + ky * t.kernel_w * 16;
    if constexpr (kWidth > 0 && kUnitStep) {
      VF x[kPixels + kWidth - 1];
#pragma GCC unroll 16
      for (int i = 0; i < kPixels + kWidth - 1; ++i) x[i] = load(in + i * t.kx_stride);
#pragma GCC unroll 8
      for (int kx = 0; kx < kWidth; ++kx) {
        const VF weight = hn::Load(d, w + kx * 16);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p) acc[p] = hn::MulAdd(x[p + kx], weight, acc[p]);
      }
    } else {
      const int64_t begin = kWidth > 0 ? 0 : t.kx_begin;
      const int64_t end = kWidth > 0 ? kWidth : t.kx_end;
      for (int64_t kx = begin; kx < end; ++kx) {
        const VF weight = hn::Load(d, w + kx * 16);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p)
          acc[p] = hn::MulAdd(load(in + kx * t.kx_stride + p * t.pixel_stride), weight, acc[p]);
      }
    }
  }
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    const VF y = AtMost(hi, AtLeast(lo, acc[p]));
    float* out = t.out + p * t.ld_out + channel;
    if (kTail) {
      StoreFirst(y, out, lanes);
    } else {
      hn::StoreU(y, d, out);
    }
  }
}

template <int kPixels, int kWidth, bool kUnitStep>
void Depthwise(const SlidingTile& t) {
  int64_t channel = 0;
  for (; channel + kLanes <= t.channels; channel += kLanes)
    DepthwiseVector<kPixels, kWidth, kUnitStep, false>(t, channel, kLanes);
  if (channel < t.channels)
    DepthwiseVector<kPixels, kWidth, kUnitStep, true>(t, channel, static_cast<size_t>(t.channels - channel));
}

constexpr int kPixels = 4;

SlidingFunctions Functions(int64_t kernel_w, bool unit_step) {
  SlidingFunctions functions{&Depthwise<1, 0, false>, &Depthwise<kPixels, 0, false>, kPixels};
  if (kernel_w == 3) functions.uncut = unit_step ? &Depthwise<kPixels, 3, true> : &Depthwise<kPixels, 3, false>;
  if (kernel_w == 5 && unit_step) functions.uncut = &Depthwise<kPixels, 5, true>;
  return functions;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
SlidingFunctions depthwise_functions(int64_t kernel_w, bool unit_step) {
  return HETNN_CHOSEN(Functions)(kernel_w, unit_step);
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
