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
    const auto bits = hn::BitCast(d, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffU)));
    const auto quiet = hn::Or(bits, hn::Set(d, 0x400000U));
    const VF chosen = hn::IfThenElse(hn::IsNaN(v), hn::BitCast(DF(), quiet), hn::BitCast(DF(), nearest));
    return hn::BitCast(DF(), hn::And(hn::BitCast(d, chosen), hn::Set(d, 0xffff0000U)));
  }
  static HWY_INLINE void Store(VF v, uint16_t* p) {
    const auto high = hn::ShiftRight<16>(hn::BitCast(DU(), Round(v)));
    hn::StoreU(hn::DemoteTo(D(), hn::BitCast(DI(), high)), D(), p);
  }
};

template <typename T, bool kWeighs, bool kRounds>
void Halves(const HalvesPass& pass) {
  const auto rounded = [](VF v) HWY_ATTR {
    if constexpr (kRounds) {
      return T::Round(v);
    } else {
      return v;
    }
  };
  // Of the last elements, which fill no vector, copies with room behind are read.
  uint16_t part[kLanes] = {};
  for (int64_t i = 0; i < pass.n; i += kLanes) {
    const auto lanes = static_cast<size_t>(std::min<int64_t>(kLanes, pass.n - i));
    const bool whole = lanes == static_cast<size_t>(kLanes);
    const auto term = [&](int k) HWY_ATTR {
      const uint16_t* from = pass.inputs[k] + i;
      if (!whole) std::copy_n(from, lanes, part);
      const VF x = T::Load(whole ? from : part);
      if constexpr (kWeighs) {
        return rounded(hn::Mul(x, hn::Set(DF(), pass.coefficients[k])));
      } else {
        return x;
      }
    };
    VF sum = pass.first ? term(0) : hn::LoadU(DF(), pass.so_far + i);
    for (int k = pass.first ? 1 : 0; k < pass.count; ++k) sum = rounded(hn::Add(sum, term(k)));
    if (pass.out == nullptr) {
      hn::StoreU(sum, DF(), pass.so_far + i);
    } else if (whole) {
      T::Store(sum, pass.out + i);
    } else {
      T::Store(sum, part);
      std::copy_n(part, lanes, pass.out + i);
    }
  }
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

void Bytes(const uint8_t* x, uint8_t* out, int64_t n) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, out + i)), d, out + i);
  for (; i < n; ++i) out[i] = static_cast<uint8_t>(out[i] + x[i]);
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
