// Winograd transforms over integers for each instruction set.
#include "hetnn/kernels/conv/integer_winograd_transform.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/integer_winograd_transform.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/conv/winograd_both-inl.h"
#include "hetnn/kernels/integer_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
using VW = hn::Vec<D16>;
constexpr int64_t kWords = kLanes * 2;  // of a vector
static_assert(kWordsAtOnce % kWords == 0);

// t = B^T d at 0, +-1, +-2 and infinity. Of bytes, no element of B^T d B exceeds 100 * 128.
HWY_INLINE void InputVector(const VW* d, VW* t) {
  const VW even_1 = hn::Sub(d[4], hn::ShiftLeft<2>(d[2])), odd_1 = hn::Sub(d[3], hn::ShiftLeft<2>(d[1]));
  const VW even_2 = hn::Sub(d[4], d[2]), odd_2 = hn::Sub(d[3], d[1]);
  const VW twice = hn::Add(odd_2, odd_2);
  t[0] = hn::Add(hn::ShiftLeft<2>(hn::Sub(d[0], d[2])), even_2);
  t[1] = hn::Add(even_1, odd_1);
  t[2] = hn::Sub(even_1, odd_1);
  t[3] = hn::Add(even_2, twice);
  t[4] = hn::Sub(even_2, twice);
  t[5] = hn::Sub(hn::Sub(d[5], d[3]), hn::Add(twice, twice));
}

// Of the channels from one on: a whole vector, or `count` of them and zeros behind.
template <bool kTail>
HWY_INLINE void InputChannels(const IntegerWinogradInput& t, int64_t channel, int64_t count) {
  const D16 d;
  const hn::Rebind<int8_t, D16> bytes;
  const int8_t* const* HWY_RESTRICT from = t.pixels;
  int16_t* HWY_RESTRICT to = t.to + channel;
  const int64_t point_stride = t.point_stride;
  const auto load = [&](int i, int j) HWY_ATTR {
    const int8_t* pixel = from[i * kWinogradInput + j] + channel;
    return hn::PromoteTo(d, kTail ? hn::LowerHalf(bytes, LoadSome(pixel, count)) : hn::LoadU(bytes, pixel));
  };
  TransformBoth<VW, kWinogradInput, kWinogradInput>(
      load, [](const VW* p, VW* y) HWY_ATTR { InputVector(p, y); },
      [&](int i, int j, VW y) HWY_ATTR { hn::StoreU(y, d, to + (i * kWinogradInput + j) * point_stride); });
}

void InputTile(const IntegerWinogradInput& t) {
  int64_t channel = 0;
  for (; channel + kWords <= t.channels; channel += kWords) InputChannels<false>(t, channel, kWords);
  if (channel < t.channels) InputChannels<true>(t, channel, t.channels - channel);
}

// What the weights' transform leaves to divide output r by: 3 * 2^kHalves[r].
constexpr int kHalves[kWinogradOutput] = {3, 2, 1, 1};
constexpr int32_t kInverseOf9 = 954437177;
static_assert(9U * static_cast<uint32_t>(kInverseOf9) == 1);

// 3 * 2^kHalves[r] times y_r = sum of p^r m_p over the points, whose m_p stand there times 24, 6, 6, 24, 24 and 6.
HWY_INLINE void OutputVector(const VI* m, VI* y) {
  const VI plus_1 = hn::Add(m[1], m[2]), minus_1 = hn::Sub(m[1], m[2]);
  const VI plus_2 = hn::Add(m[3], m[4]), minus_2 = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(hn::Add(m[0], plus_2), hn::ShiftLeft<2>(plus_1));
  y[1] = hn::Add(hn::Add(minus_1, minus_1), minus_2);
  y[2] = hn::Add(plus_1, plus_2);
  y[3] = hn::Add(hn::Add(minus_1, m[5]), hn::Add(minus_2, minus_2));
}

void OutputTile(const IntegerWinogradOutput& t) {
  const DI d;
  const VI inverse = hn::Set(d, kInverseOf9);
  const int64_t point_stride = t.point_stride, row_stride = t.row_stride, pixel_stride = t.pixel_stride;
  for (int64_t channel = 0; channel < t.channels; channel += kLanes) {
    const int32_t* HWY_RESTRICT from = t.from + channel;
    int32_t* HWY_RESTRICT to = t.to + channel;
    TransformBoth<VI, kWinogradInput, kWinogradOutput>(
        [&](int i, int j) HWY_ATTR { return hn::LoadU(d, from + (i * kWinogradInput + j) * point_stride); },
        [](const VI* m, VI* y) HWY_ATTR { OutputVector(m, y); },
        [&](int i, int j, VI y) HWY_ATTR {
          const VI divided = hn::ShiftRightSame(hn::Mul(y, inverse), kHalves[i] + kHalves[j]);
          hn::StoreU(divided, d, to + i * row_stride + j * pixel_stride);
        });
  }
}
#endif

const IntegerWinogradTable* Table() {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  static constexpr IntegerWinogradTable kTable = {&InputTile, &OutputTile};
#else
  static constexpr IntegerWinogradTable kTable = {};
#endif
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const IntegerWinogradTable& integer_winograd_table() { return *HETNN_CHOSEN_BY(chosen_integer_isa(), Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
