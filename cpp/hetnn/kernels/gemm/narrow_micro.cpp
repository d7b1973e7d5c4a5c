// Products with weights of f16 and bf16, for each instruction set.
#include "hetnn/kernels/gemm/narrow_micro.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/narrow_micro.cpp"
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

constexpr int kVectors = static_cast<int>(kPanel) / kLanes;
constexpr int kChains = 4;            // sums under way that hide how long a multiply-add takes
constexpr int64_t kMostSteps = 1024;  // products of a column that are summed before their sum joins the others'
constexpr int64_t kAhead = 1024;      // how far ahead weights are brought near

struct Half {
  static HWY_INLINE VF Load(const uint16_t* at) {
    const hn::Rebind<hwy::float16_t, DF> d;
    return hn::PromoteTo(DF(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(at)));
  }
};
struct Brain {
  static HWY_INLINE VF Load(const uint16_t* at) {
    const hn::Rebind<uint32_t, DF> d;
    const hn::Rebind<uint16_t, DF> d16;
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(d16, at))));
  }
};

template <typename Weight>
void Multiply(const NarrowTile& t) {
  const DF d;
  VF y[kVectors];
  for (int v = 0; v < kVectors; ++v) y[v] = hn::Zero(d);
  const uint16_t* w = t.panel;
  for (int64_t k = 0; k < t.k;) {
    const int64_t end = HWY_MIN(t.k, k + kMostSteps);
    VF sums[kChains][kVectors];
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[c][v] = hn::Zero(d);
#pragma GCC unroll 1
    for (; end - k >= kChains; k += kChains, w += kChains * kPanel) {
#pragma GCC unroll 16
      for (int c = 0; c < kChains; ++c) {
        if (c % 2 == 0) __builtin_prefetch(w + kAhead + c * kPanel);
        const VF x = Const(t.x[k + c]);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v)
          sums[c][v] = hn::MulAdd(x, Weight::Load(w + c * kPanel + v * kLanes), sums[c][v]);
      }
    }
#pragma GCC unroll 1
    for (; k < end; ++k, w += kPanel)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        sums[0][v] = hn::MulAdd(Const(t.x[k]), Weight::Load(w + v * kLanes), sums[0][v]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v)
      y[v] = hn::Add(y[v], hn::Add(hn::Add(sums[0][v], sums[1][v]), hn::Add(sums[2][v], sums[3][v])));
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t columns = HWY_MIN(kLanes, t.cols - v * kLanes);
    if (columns <= 0) return;
    const auto count = static_cast<size_t>(columns);
    const bool whole = columns == kLanes;
    if (t.bias != nullptr)
      y[v] = hn::Add(y[v], whole ? hn::LoadU(d, t.bias + v * kLanes) : LoadFirst(t.bias + v * kLanes, count));
    whole ? hn::StoreU(y[v], d, t.out + v * kLanes) : StoreFirst(y[v], t.out + v * kLanes, count);
  }
}

template <typename Weight>
void Widen(const uint16_t* from, int64_t count, float* to) {
  for (int64_t k = 0; k < count; k += kLanes) hn::StoreU(Weight::Load(from + k), DF(), to + k);
}

void MultiplyHalf(const NarrowTile& t) { Multiply<Half>(t); }
void MultiplyBrain(const NarrowTile& t) { Multiply<Brain>(t); }
void WidenHalf(const uint16_t* from, int64_t count, float* to) { Widen<Half>(from, count, to); }
void WidenBrain(const uint16_t* from, int64_t count, float* to) { Widen<Brain>(from, count, to); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

void multiply_narrow(DType dtype, const NarrowTile& tile) {
  dtype == DType::f16 ? HETNN_CHOSEN(MultiplyHalf)(tile) : HETNN_CHOSEN(MultiplyBrain)(tile);
}

void widen_panel(DType dtype, const uint16_t* from, int64_t count, float* to) {
  dtype == DType::f16 ? HETNN_CHOSEN(WidenHalf)(from, count, to) : HETNN_CHOSEN(WidenBrain)(from, count, to);
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
