// Sums of narrow types for each instruction set.
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"

#include <algorithm>

#include "hetnn/base/narrow_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/elementwise/nary_narrow_ops.cpp"
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

struct F16 {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  using D = hn::Rebind<hwy::float16_t, DF>;
  static HWY_INLINE VF Load(const uint16_t* p) {
    return hn::PromoteTo(DF(), hn::LoadU(D(), reinterpret_cast<const hwy::float16_t*>(p)));
  }
  static HWY_INLINE void Store(VF v, uint16_t* p) {
    hn::StoreU(hn::DemoteTo(D(), v), D(), reinterpret_cast<hwy::float16_t*>(p));
  }
  static HWY_INLINE VF Round(VF v) { return hn::PromoteTo(DF(), hn::DemoteTo(D(), v)); }
#else
  static HWY_INLINE VF Load(const uint16_t* p) {
    HWY_ALIGN float wide[kLanes];
    for (int i = 0; i < kLanes; ++i) wide[i] = f16_to_f32(p[i]);
    return hn::Load(DF(), wide);
  }
  static HWY_INLINE void Store(VF v, uint16_t* p) {
    HWY_ALIGN float wide[kLanes];
    hn::Store(v, DF(), wide);
    for (int i = 0; i < kLanes; ++i) p[i] = f32_to_f16(wide[i]);
  }
  static HWY_INLINE VF Round(VF v) {
    uint16_t narrow[kLanes];
    Store(v, narrow);
    return Load(narrow);
  }
#endif
  static HWY_INLINE VF RoundSum(VF v) { return Round(v); }
  static HWY_INLINE void StoreRounded(VF v, uint16_t* p) { Store(v, p); }
};

struct BF16 {
  using DU = hn::RebindToUnsigned<DF>;
  using D = hn::Rebind<uint16_t, DF>;
  static HWY_INLINE VF Load(const uint16_t* p) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), hn::LoadU(D(), p))));
  }
  // To nearest even; a NaN stays one.
  static HWY_INLINE VF Round(VF v) {
    const DU d;
    const auto quiet = hn::Or(hn::BitCast(d, v), hn::Set(d, 0x400000U));
    const VF chosen = hn::IfThenElse(hn::IsNaN(v), hn::BitCast(DF(), quiet), hn::BitCast(DF(), Nearest(v)));
    return hn::BitCast(DF(), hn::And(hn::BitCast(d, chosen), hn::Set(d, 0xffff0000U)));
  }
  static HWY_INLINE void Store(VF v, uint16_t* p) { StoreHigh(hn::BitCast(DU(), Round(v)), p); }
  // Of a sum of values of the type, whose NaN has no digits that could carry.
  static HWY_INLINE VF RoundSum(VF v) { return hn::BitCast(DF(), hn::And(Nearest(v), hn::Set(DU(), 0xffff0000U))); }
  static HWY_INLINE void StoreRounded(VF v, uint16_t* p) { StoreHigh(hn::BitCast(DU(), v), p); }

 private:
  static HWY_INLINE hn::Vec<DU> Nearest(VF v) {
    const DU d;
    const auto bits = hn::BitCast(d, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    return hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffU)));
  }
  static HWY_INLINE void StoreHigh(hn::Vec<DU> bits, uint16_t* p) {
    hn::StoreU(hn::DemoteTo(D(), hn::BitCast(DI(), hn::ShiftRight<16>(bits))), D(), p);
  }
};

// Sums of kVectors vectors, of which of(k) says where those of input k stand.
template <typename T, bool kWeighs, bool kRounds, int kVectors, typename Of>
HWY_INLINE void SumHalves(const HalvesPass& pass, const Of& of, float* so_far, uint16_t* out) {
  VF sums[kVectors];
  const auto each_term = [&](int k, const auto& take) HWY_ATTR {
    const uint16_t* const from = of(k);
    for (int v = 0; v < kVectors; ++v) {
      VF x = T::Load(from + v * kLanes);
      if constexpr (kWeighs) {
        x = hn::Mul(x, hn::Set(DF(), pass.coefficients[k]));
        if constexpr (kRounds) x = T::Round(x);
      }
      take(sums[v], x);
    }
  };
  if (!pass.first) {
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(DF(), so_far + v * kLanes);
  } else {
    // A NaN of a value alone may not be quiet.
    const bool alone = kRounds && !kWeighs && pass.count == 1;
    each_term(0, [&](VF& sum, VF x) HWY_ATTR { sum = alone ? T::Round(x) : x; });
  }
  for (int k = pass.first ? 1 : 0; k < pass.count; ++k) {
    each_term(k, [](VF& sum, VF x) HWY_ATTR {
      sum = hn::Add(sum, x);
      if constexpr (kRounds) sum = kWeighs ? T::Round(sum) : T::RoundSum(sum);
    });
  }
  for (int v = 0; v < kVectors; ++v) {
    if (out == nullptr) {
      hn::StoreU(sums[v], DF(), so_far + v * kLanes);
    } else if constexpr (kRounds) {
      T::StoreRounded(sums[v], out + v * kLanes);
    } else {
      T::Store(sums[v], out + v * kLanes);
    }
  }
}

template <typename T, bool kWeighs, bool kRounds>
void Halves(const HalvesPass& pass) {
  constexpr int kVectors = 4;
  int64_t i = 0;
  const auto at = [&](int k) HWY_ATTR { return pass.inputs[k] + i; };
  const auto out = [&] { return pass.out == nullptr ? nullptr : pass.out + i; };
  for (; i + kVectors * kLanes <= pass.n; i += kVectors * kLanes)
    SumHalves<T, kWeighs, kRounds, kVectors>(pass, at, pass.so_far + i, out());
  for (; i + kLanes <= pass.n; i += kLanes) SumHalves<T, kWeighs, kRounds, 1>(pass, at, pass.so_far + i, out());
  if (i == pass.n) return;
  // Of the last elements, which fill no vector, copies with room behind are read.
  const auto lanes = static_cast<size_t>(pass.n - i);
  uint16_t part[kLanes] = {}, result[kLanes];
  const auto copy = [&](int k) HWY_ATTR {
    std::copy_n(pass.inputs[k] + i, lanes, part);
    return static_cast<const uint16_t*>(part);
  };
  SumHalves<T, kWeighs, kRounds, 1>(pass, copy, pass.so_far + i, pass.out == nullptr ? nullptr : result);
  if (pass.out != nullptr) std::copy_n(result, lanes, pass.out + i);
}

template <typename T>
void Widen(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(T::Load(x + i), DF(), y + i);
  if (i == n) return;
  uint16_t part[kLanes] = {};
  const auto lanes = static_cast<size_t>(n - i);
  std::copy_n(x + i, lanes, part);
  StoreFirst(T::Load(part), y + i, lanes);
}

template <typename T>
void Narrow(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) T::Store(hn::LoadU(DF(), x + i), y + i);
  if (i == n) return;
  uint16_t part[kLanes];
  const auto lanes = static_cast<size_t>(n - i);
  T::Store(LoadFirst(x + i, lanes), part);
  std::copy_n(part, lanes, y + i);
}

template <typename T>
void RoundBlock(const Block& block) {
  for (int64_t r = 0; r < block.rows; ++r) {
    const float* in = block.in + r * block.ld_in;
    float* out = block.out + r * block.ld_out;
    int64_t c = 0;
    for (; c + kLanes <= block.cols; c += kLanes) hn::StoreU(T::Round(hn::LoadU(DF(), in + c)), DF(), out + c);
    if (c == block.cols) continue;
    const auto lanes = static_cast<size_t>(block.cols - c);
    StoreFirst(T::Round(LoadFirst(in + c, lanes)), out + c, lanes);
  }
}

void Bytes(const BytesPass& pass) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint8_t* const from = pass.first ? pass.inputs[0] : pass.out;
  const int begin = pass.first ? 1 : 0;
  int64_t i = 0;
  for (; i + 4 * lanes <= pass.n; i += 4 * lanes) {
    const auto at = [&](const uint8_t* p, int64_t v) HWY_ATTR { return hn::LoadU(d, p + i + v * lanes); };
    auto a = at(from, 0), b = at(from, 1), c = at(from, 2), e = at(from, 3);
    for (int k = begin; k < pass.count; ++k) {
      const uint8_t* const x = pass.inputs[k];
      a = hn::Add(a, at(x, 0));
      b = hn::Add(b, at(x, 1));
      c = hn::Add(c, at(x, 2));
      e = hn::Add(e, at(x, 3));
    }
    hn::StoreU(a, d, pass.out + i);
    hn::StoreU(b, d, pass.out + i + lanes);
    hn::StoreU(c, d, pass.out + i + 2 * lanes);
    hn::StoreU(e, d, pass.out + i + 3 * lanes);
  }
  for (; i < pass.n; ++i) {
    uint8_t sum = from[i];
    for (int k = begin; k < pass.count; ++k) sum = static_cast<uint8_t>(sum + pass.inputs[k][i]);
    pass.out[i] = sum;
  }
}

template <typename T>
HalvesFunction Chosen(bool weighs, bool rounds) {
  if (weighs) return rounds ? Halves<T, true, true> : Halves<T, true, false>;
  return rounds ? Halves<T, false, true> : Halves<T, false, false>;
}

HalvesFunction HalvesOf(DType dtype, bool weighs, bool rounds) {
  return dtype == DType::f16 ? Chosen<F16>(weighs, rounds) : Chosen<BF16>(weighs, rounds);
}
HalvesConversion ConversionOf(DType dtype) {
  return dtype == DType::f16 ? HalvesConversion{Widen<F16>, Narrow<F16>} : HalvesConversion{Widen<BF16>, Narrow<BF16>};
}
BlockFunction RoundOf(DType dtype) { return dtype == DType::f16 ? RoundBlock<F16> : RoundBlock<BF16>; }
BytesFunction BytesOf() { return Bytes; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

HalvesFunction halves_function(DType dtype, bool weighs, bool rounds) {
  return HETNN_CHOSEN(HalvesOf)(dtype, weighs, rounds);
}
HalvesConversion halves_conversion(DType dtype) { return HETNN_CHOSEN(ConversionOf)(dtype); }
BlockFunction round_function(DType dtype) { return HETNN_CHOSEN(RoundOf)(dtype); }
BytesFunction bytes_function() { return HETNN_CHOSEN(BytesOf)(); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
