// Tiles whose last panel has no more than eight columns: its vectors are half as wide, which processors that multiply
// sixteen lanes in two halves (Zen 4) do in half the time. The sums are those of the whole tiles, bit for bit.
#include "hetnn/kernels/gemm/micro.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/half_tiles.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/gemm/finish-inl.h"
#include "hetnn/kernels/gemm/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3

using DH = hn::Half<DF>;
using VH = hn::Vec<DH>;

// The sums of a tile: kPanels - 1 whole vectors and half a one of each row.
template <int kRows, int kPanels>
struct Sums {
  VF whole[kRows][kPanels];  // the last is not used
  VH half[kRows];
};

template <int kRows, int kPanels>
HWY_INLINE void Clear(Sums<kRows, kPanels>& sums) {
  HETNN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HETNN_UNROLL
    for (int v = 0; v + 1 < kPanels; ++v) sums.whole[r][v] = hn::Zero(DF());
    sums.half[r] = hn::Zero(DH());
  }
}

template <int kRows, int kPanels>
HWY_INLINE void AddTo(const Sums<kRows, kPanels>& sums, float* HWY_RESTRICT room, bool has_sums) {
  const DF d;
  const auto add = [&](float* at, VF v) HWY_ATTR { hn::Store(has_sums ? hn::Add(hn::Load(d, at), v) : v, d, at); };
  HETNN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* at = room + r * kPanels * kPanel;
    HETNN_UNROLL
    for (int v = 0; v + 1 < kPanels; ++v) add(at + v * kPanel, sums.whole[r][v]);
    add(at + (kPanels - 1) * kPanel, hn::ZeroExtendVector(d, sums.half[r]));
  }
}

template <int kRows, int kPanels>
void HalfTile(const MicroTile& t) {
  Sums<kRows, kPanels> acc;
  bool has_sums = false;
  const float* HWY_RESTRICT b = t.panel;
  const auto* prefetch = static_cast<const std::byte*>(t.prefetch);
  const auto step = [&](const auto& element) HWY_ATTR {
    VF w[kPanels];
    HETNN_UNROLL
    for (int v = 0; v + 1 < kPanels; ++v) w[v] = hn::Load(DF(), b + v * t.panel_stride);
    const VH last = hn::Load(DH(), b + (kPanels - 1) * t.panel_stride);
    HETNN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float x = element(r);
      HETNN_UNROLL
      for (int v = 0; v + 1 < kPanels; ++v) acc.whole[r][v] = hn::MulAdd(hn::Set(DF(), x), w[v], acc.whole[r][v]);
      // A whole vector's broadcast takes as long as two halves.
      const VH half = kPanels == 1 ? hn::Set(DH(), x) : hn::LowerHalf(DH(), hn::Set(DF(), x));
      acc.half[r] = hn::MulAdd(half, last, acc.half[r]);
    }
    b += kPanel;
    __builtin_prefetch(prefetch, 0, 2);
    prefetch += t.prefetch_step_bytes;
  };
  for (int64_t tap = 0, k = 0;;) {
    Clear(acc);
    for (int64_t steps = 0; tap < t.taps && steps < kMostSteps;) {
      const int64_t end = HWY_MIN(t.k, k + kMostSteps - steps);
      steps += end - k;
      const std::byte* const* rows = t.rows + tap * t.rows_stride;
      const auto row_of = [&](int r) HWY_ATTR { return reinterpret_cast<const float*>(rows[r]) + t.row_offset; };
      if (t.even_bytes != 0) {
        EvenPointers at(row_of(0) + k, t.even_bytes);
        for (; k < end; ++k, at.Next()) step([&](int r) HWY_ATTR { return at.Of(r); });
      } else {
        const float* a[kRows];
        HETNN_UNROLL
        for (int r = 0; r < kRows; ++r) a[r] = row_of(r);
        for (; k < end; ++k) step([&](int r) HWY_ATTR { return a[r][k]; });
      }
      if (k < t.k) continue;
      k = 0;
      ++tap;
    }
    const bool done = tap == t.taps;
    if (done && !has_sums && t.addend == nullptr && t.finish == nullptr) break;
    AddTo(acc, t.sums, has_sums);
    if (done) return t.finish != nullptr ? t.finish(t, kRows, kPanels) : FinishSums(t, kRows, kPanels);
    has_sums = true;
  }
  const DF d;
  const DH dh;
  constexpr int64_t kBegin = (kPanels - 1) * kPanel;  // of the half vector's columns
  const auto some = hn::FirstN(dh, static_cast<size_t>(t.cols - kBegin));
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
  const VH bias = t.bias != nullptr ? hn::MaskedLoad(some, dh, t.bias + kBegin) : hn::Zero(dh);
  HETNN_UNROLL
  for (int v = 0; v + 1 < kPanels; ++v) {
    const VF bias_v = t.bias != nullptr ? hn::LoadU(d, t.bias + v * kPanel) : hn::Zero(d);
    HETNN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF y = t.bias != nullptr ? hn::Add(acc.whole[r][v], bias_v) : acc.whole[r][v];
      hn::StoreU(AtMost(hi, AtLeast(lo, y)), d, t.out + v * kPanel + r * t.ld_out);
    }
  }
  HETNN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const VH y = t.bias != nullptr ? hn::Add(acc.half[r], bias) : acc.half[r];
    const VH least = hn::Max(hn::LowerHalf(dh, lo), y);
    hn::BlendedStore(hn::Min(hn::LowerHalf(dh, hi), least), some, dh, t.out + kBegin + r * t.ld_out);
  }
}

const HalfTiles* Tiles() {
  static constexpr HalfTiles kTiles = {
      {{&HalfTile<12, 1>, &HalfTile<13, 1>, &HalfTile<14, 1>}, {&HalfTile<12, 2>, &HalfTile<13, 2>, &HalfTile<14, 2>}}};
  return &kTiles;
}

#else
const HalfTiles* Tiles() { return nullptr; }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

const HalfTiles* half_tiles() { return HETNN_CHOSEN(Tiles)(); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
