// Depthwise convolution of integers for each instruction set.
#include "hetnn/kernels/conv/integer_depthwise.h"

#include <cstring>
#include <type_traits>

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
// The same bytes of four pixels, side by side for each channel.
template <typename Products>
HWY_INLINE void Interleave(const hn::Vec<D8> (&x)[4], typename Products::Row (&four)[4]) {
  const DI d;
  const D8 d8;
  const D16 d16;
  const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, x[0], x[1])),
             high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, x[0], x[1])),
             low23 = hn::BitCast(d16, hn::InterleaveLower(d8, x[2], x[3])),
             high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, x[2], x[3]));
  four[0] = Products::OfRows(hn::BitCast(d, hn::InterleaveLower(d16, low01, low23)));
  four[1] = Products::OfRows(hn::BitCast(d, hn::InterleaveUpper(d16, low01, low23)));
  four[2] = Products::OfRows(hn::BitCast(d, hn::InterleaveLower(d16, high01, high23)));
  four[3] = Products::OfRows(hn::BitCast(d, hn::InterleaveUpper(d16, high01, high23)));
}

// Where vectors of bytes go: n channels of one pixel.
struct OfOne {
  int64_t n;
  static constexpr int64_t kPixels = 1;
  HWY_INLINE hn::Vec<D8> Load(const int8_t* p, const int8_t*) const { return LoadSome(p, n); }
  HWY_INLINE void Store(hn::Vec<D8> v, int8_t* p, int8_t*) const { StoreSome(v, p, n); }
  // What belongs to the channels.
  static HWY_INLINE VI Words(const int32_t* p) { return hn::LoadU(DI(), p); }
};

#if HWY_TARGET == HWY_AVX3
// At most half as many channels, of two pixels.
struct OfTwo {
  __mmask32 mask;
  static constexpr int64_t kPixels = 2;
  explicit OfTwo(int64_t n) : mask(static_cast<__mmask32>((uint64_t{1} << n) - 1)) {}
  HWY_INLINE hn::Vec<D8> Load(const int8_t* p, const int8_t* q) const {
    return {_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi8(mask, p)),
                               _mm256_maskz_loadu_epi8(mask, q), 1)};
  }
  HWY_INLINE void Store(hn::Vec<D8> v, int8_t* p, int8_t* q) const {
    _mm256_mask_storeu_epi8(p, mask, _mm512_castsi512_si256(v.raw));
    _mm256_mask_storeu_epi8(q, mask, _mm512_extracti64x4_epi64(v.raw, 1));
  }
  static HWY_INLINE VI Words(const int32_t* p) {
    return {_mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
};
#endif

// Channels [c, c + n) of all pixels, as many at once as `Pixels` says. kStride 0: windows of any size and distance.
template <typename Products, int kStride, typename Pixels>
void Channels(const IntegerDepthwise& t, int64_t c, const Pixels& at_once) {
  constexpr int kKept = kStride == 0 ? 0 : 3 - kStride;  // columns of a window that belong to the next
  const ToBytes<true> to_bytes(t.low, t.high, t.zero);
  const VI turned = hn::Set(DI(), t.x_zero + Products::kTurn);
  const int64_t padded = (t.channels + kDepthwiseBlock - 1) / kDepthwiseBlock * kDepthwiseBlock;
  const int64_t block = c / kDepthwiseBlock * kDepthwiseBlock, within = c % kDepthwiseBlock / 4;
  VI base[4];
  VF factor[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const int64_t at = block + 16 * j + within;
    base[j] = hn::Mul(turned, Pixels::Words(t.sums + at));
    base[j] = t.bias == nullptr ? hn::Neg(base[j]) : hn::Sub(Pixels::Words(t.bias + at), base[j]);
    factor[j] = hn::BitCast(DF(), Pixels::Words(reinterpret_cast<const int32_t*>(t.factors + at)));
  }
  const auto* weights = reinterpret_cast<const int32_t*>(t.weights) + block * t.quads + within;
  // The second of two pixels comes that far behind the first; of an odd number one is computed twice.
  const int64_t pixels = (t.pixels + Pixels::kPixels - 1) / Pixels::kPixels, second = t.pixels - pixels;
  const auto load = [&](int64_t tap, int64_t pixel) HWY_ATTR {
    const std::byte* const* row = t.rows + tap * t.rows_stride + pixel;
    return at_once.Load(reinterpret_cast<const int8_t*>(row[0]) + c, reinterpret_cast<const int8_t*>(row[second]) + c);
  };
  typename Products::Row columns[3][4];
  const auto load_column = [&](int kx, int64_t pixel) HWY_ATTR {
    const int64_t column = pixel * kStride + kx - t.before, other = column + second * kStride;
    const auto line = [&](int ky) HWY_ATTR {
      const auto at = [&](int64_t x) HWY_ATTR {
        const bool is_inside = static_cast<uint64_t>(x) < static_cast<uint64_t>(t.width);
        return reinterpret_cast<const int8_t*>(is_inside ? t.lines[ky] + x * t.line_steps[ky] : t.zeros) + c;
      };
      return at_once.Load(at(column), at(other));
    };
    const hn::Vec<D8> last = line(2);  // and once more, times 0
    const hn::Vec<D8> x[4] = {line(0), line(1), last, last};
    Interleave<Products>(x, columns[kx]);
  };
#pragma GCC unroll 4
  for (int kx = 0; kx < kKept; ++kx) load_column(kx, 0);
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    VI acc[4] = {base[0], base[1], base[2], base[3]};
    const auto add = [&](const typename Products::Row(&four)[4], int64_t quad) HWY_ATTR {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const VI w = Pixels::Words(weights + quad * kDepthwiseBlock + 16 * j);
        acc[j] = Products::Add(acc[j], four[j], Products::OfWeights(w));
      }
    };
    if constexpr (kStride > 0) {
#pragma GCC unroll 4
      for (int kx = kKept; kx < 3; ++kx) load_column(kx, pixel);
#pragma GCC unroll 4
      for (int kx = 0; kx < 3; ++kx) add(columns[kx], kx);
#pragma GCC unroll 4
      for (int kx = 0; kx < kKept; ++kx)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) columns[kx][j] = columns[kx + kStride][j];
    } else {
      for (int64_t quad = 0; quad < t.quads; ++quad) {
        const hn::Vec<D8> x[4] = {load(4 * quad, pixel), load(4 * quad + 1, pixel), load(4 * quad + 2, pixel),
                                  load(4 * quad + 3, pixel)};
        typename Products::Row four[4];
        Interleave<Products>(x, four);
        add(four, quad);
      }
    }
    if (t.raw != nullptr) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) hn::StoreU(acc[j], DI(), t.raw + pixel * padded + block + 16 * j + within);
      continue;
    }
    const auto real = [&](int j) HWY_ATTR { return hn::Mul(hn::ConvertTo(DF(), acc[j]), factor[j]); };
    int8_t* out = t.out + pixel * t.ld_out + c;
    at_once.Store(to_bytes(real(0), real(1), real(2), real(3)), out, out + second * t.ld_out);
  }
}

template <typename Products, int kStride = 0>
void Depthwise(const IntegerDepthwise& t) {
  for (int64_t c = 0; c < t.channels; c += kBytes) {
    const int64_t n = HWY_MIN(kBytes, t.channels - c);
#if HWY_TARGET == HWY_AVX3
    if (n <= kBytes / 2 && t.raw == nullptr) {
      Channels<Products, kStride>(t, c, OfTwo(n));
      continue;
    }
#endif
    Channels<Products, kStride>(t, c, OfOne{n});
  }
}

#endif

template <typename Products>
constexpr IntegerDepthwiseTable MakeTable() {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  // Where four products are one instruction, what comes before them counts.
  if constexpr (std::is_same_v<Products, Quads>)
    return {&Depthwise<Products>, {nullptr, &Depthwise<Products, 1>, &Depthwise<Products, 2>}};
#endif
  return {&Depthwise<Products>, {}};
}

const IntegerDepthwiseTable* Table() {
#if HWY_TARGET == HWY_AVX3
  static constexpr IntegerDepthwiseTable kTable = MakeTable<Quads>();
#elif HWY_TARGET == HWY_AVX2
  static constexpr IntegerDepthwiseTable kQuads = MakeTable<Quads>();
  static constexpr IntegerDepthwiseTable kTable = MakeTable<Pairs>();
  if (has_avx_vnni()) return &kQuads;
#else
  static constexpr IntegerDepthwiseTable kTable = MakeTable<Singles>();
#endif
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const IntegerDepthwiseTable& integer_depthwise() { return *HETNN_CHOSEN_BY(chosen_integer_isa(), Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
