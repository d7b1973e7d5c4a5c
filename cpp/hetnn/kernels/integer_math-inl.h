// Bytes in vectors of 32-bit lanes and what makes bytes of reals, compiled once per instruction set.
#if defined(HETNN_KERNELS_INTEGER_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_INTEGER_MATH_INL_H_
#undef HETNN_KERNELS_INTEGER_MATH_INL_H_
#else
#define HETNN_KERNELS_INTEGER_MATH_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

using VI = hn::Vec<DI>;
using DB = hn::Rebind<int8_t, DI>;  // a byte for every lane

// n bytes of at most kLanes, zeros behind; no other memory is touched.
HWY_INLINE VI LoadBytes(const int8_t* p, int64_t n = kLanes) {
  if (n == kLanes) return hn::PromoteTo(DI(), hn::LoadU(DB(), p));
  HWY_ALIGN int8_t part[kLanes] = {};
  std::memcpy(part, p, static_cast<size_t>(n));
  return hn::PromoteTo(DI(), hn::Load(DB(), part));
}

HWY_INLINE void StoreBytes(hn::Vec<DB> bytes, int8_t* p, int64_t n = kLanes) {
  if (n == kLanes) return hn::StoreU(bytes, DB(), p);
  HWY_ALIGN int8_t part[kLanes];
  hn::Store(bytes, DB(), part);
  std::memcpy(p, part, static_cast<size_t>(n));
}

// Reals, none of them NaN, to the nearest integers, of two equally near the even one, plus `zero`, within [low, high].
class ToByte {
 public:
  HWY_INLINE ToByte(int32_t low, int32_t high, int32_t zero)
      : low_(Const(static_cast<float>(low - zero))),
        high_(Const(static_cast<float>(high - zero))),
        rounds_(Const(kRounds)),
        zero_(hn::Set(DI(), zero - kBits)) {}
  HWY_INLINE hn::Vec<DB> operator()(VF real) const {
    const VF within = AtMost(high_, AtLeast(low_, real));
    return hn::DemoteTo(DB(), hn::Add(hn::BitCast(DI(), hn::Add(within, rounds_)), zero_));
  }

 private:
  // Adding it rounds to an integer, which then stands in the low bits.
  static constexpr float kRounds = 12582912.0f;
  static constexpr int32_t kBits = 0x4B400000;
  VF low_, high_, rounds_;
  VI zero_;
};

#if HWY_TARGET != HWY_SCALAR
using D8 = hn::Repartition<int8_t, DI>;
using D16 = hn::Repartition<int16_t, DI>;
constexpr int64_t kBytes = kLanes * 4;  // of a vector

// n bytes of at most a vector, zeros behind; no other memory is touched.
HWY_INLINE hn::Vec<D8> LoadSome(const int8_t* p, int64_t n) {
  if (n >= kBytes) return hn::LoadU(D8(), p);
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(D8(), static_cast<size_t>(n)), D8(), p);
#else
  HWY_ALIGN int8_t part[kBytes] = {};
  std::memcpy(part, p, static_cast<size_t>(n));
  return hn::Load(D8(), part);
#endif
}

HWY_INLINE void StoreSome(hn::Vec<D8> v, int8_t* p, int64_t n) {
  if (n >= kBytes) return hn::StoreU(v, D8(), p);
#if HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(D8(), static_cast<size_t>(n)), D8(), p);
#else
  HWY_ALIGN int8_t part[kBytes];
  hn::Store(v, D8(), part);
  std::memcpy(p, part, static_cast<size_t>(n));
#endif
}

// The same of four vectors at once, by packing with saturation: their integers in the order of lanes of 16 bytes. Not
// bounded, the reals must lie below 2^31; without clamps, the bounds are those of bytes.
template <bool kBounded, bool kClamps = true>
class ToBytes {
 public:
  HWY_INLINE ToBytes(int32_t low, int32_t high, int32_t zero)
      : low_(hn::Set(D8(), static_cast<int8_t>(low))),
        high_(hn::Set(D8(), static_cast<int8_t>(high))),
        zero_(hn::Set(D16(), static_cast<int16_t>(zero))),
        most_(Const(1 << 30)) {}
  HWY_INLINE hn::Vec<D8> operator()(VF a, VF b, VF c, VF d) const {
    const auto left = hn::ReorderDemote2To(D16(), Nearest(a), Nearest(b)),
               right = hn::ReorderDemote2To(D16(), Nearest(c), Nearest(d));
    const auto bytes = Packed(hn::SaturatedAdd(left, zero_), hn::SaturatedAdd(right, zero_));
    return kClamps ? hn::Min(high_, hn::Max(low_, bytes)) : bytes;
  }

 private:
  // What is too low for 32 bits becomes the lowest.
  HWY_INLINE VI Nearest(VF v) const {
    if (kBounded) v = hn::Min(most_, v);
#if HWY_TARGET == HWY_AVX3
    return VI{_mm512_cvtps_epi32(v.raw)};
#elif HWY_TARGET == HWY_AVX2
    return VI{_mm256_cvtps_epi32(v.raw)};
#else
    return hn::NearestInt(v);
#endif
  }
  HWY_INLINE static hn::Vec<D8> Packed(hn::Vec<D16> left, hn::Vec<D16> right) {
#if HWY_TARGET == HWY_AVX3
    return hn::Vec<D8>{_mm512_packs_epi16(left.raw, right.raw)};
#elif HWY_TARGET == HWY_AVX2
    return hn::Vec<D8>{_mm256_packs_epi16(left.raw, right.raw)};
#else
    const hn::Half<D8> half;
    return hn::Combine(D8(), hn::DemoteTo(half, right), hn::DemoteTo(half, left));
#endif
  }

  hn::Vec<D8> low_, high_;
  hn::Vec<D16> zero_;
  VF most_;
};

struct InRowOrder {
  alignas(64) int32_t at[kLanes] = {};
  constexpr InRowOrder() {
    constexpr int kBlocks = kLanes / 4;
    for (int k = 0; k < kLanes; ++k) at[k] = k % kBlocks * 4 + k / kBlocks;
  }
};

// From the order of lanes of 16 bytes to one vector after another.
class BlockOrder {
 public:
  HWY_INLINE BlockOrder() : order_(hn::SetTableIndices(DI(), kOrder.at)) {}
  HWY_INLINE hn::Vec<D8> InARow(hn::Vec<D8> v) const {
    return hn::BitCast(D8(), hn::TableLookupLanes(hn::BitCast(DI(), v), order_));
  }

 private:
  static constexpr InRowOrder kOrder{};
  decltype(hn::SetTableIndices(DI(), static_cast<const int32_t*>(nullptr))) order_;
};
#endif

// Each way to multiply four bytes a lane and add the products to it: what it makes of bytes of the rows, of weights,
// and the sum, which never saturates.

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// u8 by i8 in one instruction, which Highway has no name for yet. Written as text, it needs no further target.
struct Quads {
  static constexpr int32_t kTurn = 128;
  using Row = VI;
  using Weights = VI;
  static HWY_INLINE Row Ones() { return hn::Set(DI(), 0x01010101); }
  static HWY_INLINE Row OfRows(VI bytes) { return hn::Xor(bytes, hn::Set(DI(), static_cast<int32_t>(0x80808080U))); }
  static HWY_INLINE Row OfRow(int32_t four) { return OfRows(hn::Set(DI(), four)); }
  static HWY_INLINE Weights OfWeights(VI bytes) { return bytes; }
  static HWY_INLINE VI Add(VI sum, Row x, Weights w) {
#if HWY_TARGET == HWY_AVX3
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(w.raw));
#else
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(x.raw), "x"(w.raw));
#endif
    return sum;
  }
};
#endif

#if HWY_TARGET == HWY_AVX2
// Bytes widened to 16 bits, the even ones and the odd ones: pairs of products whose sum 32 bits hold.
struct Pairs {
  static constexpr int32_t kTurn = 0;
  using D = hn::Repartition<int16_t, DI>;
  struct Row {
    hn::Vec<D> even, odd;
  };
  using Weights = Row;
  static HWY_INLINE Row OfWeights(VI bytes) {
    const auto pairs = hn::BitCast(D(), bytes);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
  }
  static HWY_INLINE Row Ones() { return OfRow(0x01010101); }
  static HWY_INLINE Row OfRows(VI bytes) { return OfWeights(bytes); }
  static HWY_INLINE Row OfRow(int32_t four) { return OfRows(hn::Set(DI(), four)); }
  static HWY_INLINE VI Add(VI sum, Row x, Weights w) {
    VI none = hn::Zero(DI());
    sum = hn::ReorderWidenMulAccumulate(DI(), x.even, w.even, sum, none);
    return hn::ReorderWidenMulAccumulate(DI(), x.odd, w.odd, sum, none);
  }
};
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Two elements of 16 bits in place of four bytes. Sums beyond 32 bits wrap.
struct Words {
  using Row = VI;
  using Weights = VI;
  static HWY_INLINE Row OfRow(int32_t two) { return hn::Set(DI(), two); }
  static HWY_INLINE Weights OfWeights(VI words) { return words; }
  static HWY_INLINE VI Add(VI sum, Row x, Weights w) {
#if HWY_TARGET == HWY_AVX3
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(w.raw));
    return sum;
#else
    const hn::Repartition<int16_t, DI> d;
    VI none = hn::Zero(DI());
    return hn::ReorderWidenMulAccumulate(DI(), hn::BitCast(d, x), hn::BitCast(d, w), sum, none);
#endif
  }
};
#endif

#if HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_AVX2
struct Singles {
  static constexpr int32_t kTurn = 0;
  using Row = VI;
  using Weights = VI;
  static HWY_INLINE Row Ones() { return OfRow(0x01010101); }
  static HWY_INLINE Row OfRows(VI bytes) { return bytes; }
  static HWY_INLINE Row OfRow(int32_t four) { return hn::Set(DI(), four); }
  static HWY_INLINE Weights OfWeights(VI bytes) { return bytes; }
  template <int kByte>
  static HWY_INLINE VI Byte(VI bytes) {
    return hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * kByte>(bytes));
  }
  static HWY_INLINE VI Add(VI sum, Row x, Weights w) {
    sum = hn::Add(sum, hn::Mul(Byte<0>(x), Byte<0>(w)));
    sum = hn::Add(sum, hn::Mul(Byte<1>(x), Byte<1>(w)));
    sum = hn::Add(sum, hn::Mul(Byte<2>(x), Byte<2>(w)));
    return hn::Add(sum, hn::Mul(Byte<3>(x), Byte<3>(w)));
  }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_INTEGER_MATH_INL_H_
