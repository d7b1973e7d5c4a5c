// Depthwise convolution of integers for each instruction set.
#include "hetnn/kernels/conv/integer_depthwise.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/integer_depthwise.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/integer_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
// One channel after another.
template <typename Products>
void Depthwise(const IntegerDepthwise& t) {
  const ToByte to_byte(t.low, t.high, t.zero);
  const int64_t padded = (t.channels + kDepthwiseBlock - 1) / kDepthwiseBlock * kDepthwiseBlock;
  for (int64_t c = 0; c < t.channels; ++c) {
    const int64_t place = place_in_block(c % kDepthwiseBlock), at = c / kDepthwiseBlock * kDepthwiseBlock + place;
    const auto* weights = reinterpret_cast<const int8_t*>(t.weights) + ((at - place) * t.quads + place) * 4;
    for (int64_t pixel = 0; pixel < t.pixels; ++pixel) {
      int32_t sum = (t.bias == nullptr ? 0 : t.bias[at]) - t.x_zero * t.sums[at];
      for (int64_t tap = 0; tap < 4 * t.quads; ++tap)
        sum += reinterpret_cast<const int8_t*>(t.rows[tap * t.rows_stride + pixel])[c] *
               weights[tap / 4 * kDepthwiseBlock * 4 + tap % 4];
      if (t.raw != nullptr) {
        t.raw[pixel * padded + at] = sum;
        continue;
      }
      StoreBytes(to_byte(Const(static_cast<float>(sum) * t.factors[at])), t.out + pixel * t.ld_out + c);
    }
  }
}
#else
constexpr int64_t kBytes = kLanes * 4;  // channels of a vector

HWY_INLINE hn::Vec<D8> LoadChannels(const int8_t* p, int64_t n) {
  if (n >= kBytes) return hn::LoadU(D8(), p);
#if HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(D8(), static_cast<size_t>(n)), D8(), p);
#else
  HWY_ALIGN int8_t part[kBytes] = {};
  std::memcpy(part, p, static_cast<size_t>(n));
  return hn::Load(D8(), part);
#endif
}

HWY_INLINE void StoreChannels(hn::Vec<D8> v, int8_t* p, int64_t n) {
  if (n >= kBytes) return hn::StoreU(v, D8(), p);
#if HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(D8(), static_cast<size_t>(n)), D8(), p);
#else
  HWY_ALIGN int8_t part[kBytes];
  hn::Store(v, D8(), part);
  std::memcpy(p, part, static_cast<size_t>(n));
#endif
}

template <typename Products>
void Depthwise(const IntegerDepthwise& t) {
  const DI d;
  const D8 d8;
  const D16 d16;
  const ToBytes<true> to_bytes(t.low, t.high, t.zero);
  const VI turned = hn::Set(d, t.x_zero + Products::kTurn);
  const int64_t padded = (t.channels + kDepthwiseBlock - 1) / kDepthwiseBlock * kDepthwiseBlock;
  for (int64_t c = 0; c < t.channels; c += kBytes) {
    const int64_t n = HWY_MIN(kBytes, t.channels - c);
    const int64_t block = c / kDepthwiseBlock * kDepthwiseBlock, within = c % kDepthwiseBlock / 4;
    VI base[4];
    VF factor[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int64_t at = block + 16 * j + within;
      base[j] = hn::Mul(turned, hn::LoadU(d, t.sums + at));
      base[j] = t.bias == nullptr ? hn::Neg(base[j]) : hn::Sub(hn::LoadU(d, t.bias + at), base[j]);
      factor[j] = hn::LoadU(DF(), t.factors + at);
    }
    const auto* weights = reinterpret_cast<const int32_t*>(t.weights) + block * t.quads + within;
    for (int64_t pixel = 0; pixel < t.pixels; ++pixel) {
      VI acc[4] = {base[0], base[1], base[2], base[3]};
      for (int64_t quad = 0; quad < t.quads; ++quad) {
        hn::Vec<D8> x[4];
#pragma GCC unroll 4
        for (int tap = 0; tap < 4; ++tap) {
          const std::byte* row = t.rows[(4 * quad + tap) * t.rows_stride + pixel];
          x[tap] = LoadChannels(reinterpret_cast<const int8_t*>(row) + c, n);
        }
        const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, x[0], x[1])),
                   high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, x[0], x[1])),
                   low23 = hn::BitCast(d16, hn::InterleaveLower(d8, x[2], x[3])),
                   high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, x[2], x[3]));
        const VI four[4] = {hn::BitCast(d, hn::InterleaveLower(d16, low01, low23)),
                            hn::BitCast(d, hn::InterleaveUpper(d16, low01, low23)),
                            hn::BitCast(d, hn::InterleaveLower(d16, high01, high23)),
                            hn::BitCast(d, hn::InterleaveUpper(d16, high01, high23))};
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          const VI w = hn::LoadU(d, weights + quad * kDepthwiseBlock + 16 * j);
          acc[j] = Products::Add(acc[j], Products::OfRows(four[j]), Products::OfWeights(w));
        }
      }
      if (t.raw != nullptr) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) hn::StoreU(acc[j], d, t.raw + pixel * padded + block + 16 * j + within);
        continue;
      }
      const auto real = [&](int j) HWY_ATTR { return hn::Mul(hn::ConvertTo(DF(), acc[j]), factor[j]); };
      StoreChannels(to_bytes(real(0), real(1), real(2), real(3)), t.out + pixel * t.ld_out + c, n);
    }
  }
}

#endif

IntegerDepthwiseFunction Chosen() {
#if HWY_TARGET == HWY_AVX3
  return &Depthwise<Quads>;
#elif HWY_TARGET == HWY_AVX2
  return has_avx_vnni() ? &Depthwise<Quads> : &Depthwise<Pairs>;
#else
  return &Depthwise<Singles>;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
IntegerDepthwiseFunction integer_depthwise() { return HETNN_CHOSEN_BY(chosen_integer_isa(), Chosen)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
