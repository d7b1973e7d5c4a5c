// Window reductions for each instruction set.
#include "hetnn/kernels/pool/window_ops.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/pool/window_ops.cpp"
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

enum class Reduction { kMax, kSum, kAccumulate };

template <Reduction kReduction, int kVectors, bool kTail>
HWY_INLINE void ReduceChannels(const PoolWindow& w, int64_t channel, size_t lanes) {
  const DF d;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? LoadFirst(p, lanes) : hn::LoadU(d, p); };
  VF acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    acc[v] = kReduction == Reduction::kMax ? load(w.in + channel + v * kLanes) : hn::Zero(d);
  for (int64_t row = 0; row < w.rows; ++row) {
    const float* in = w.in + row * w.row_stride + channel;
    for (int64_t col = 0; col < w.cols; ++col, in += w.col_stride) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const VF x = load(in + v * kLanes);
        acc[v] = kReduction == Reduction::kMax ? MaxNan(acc[v], x) : hn::Add(acc[v], x);
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    float* out = w.out + channel + v * kLanes;
    VF y = acc[v];
    if (kReduction == Reduction::kSum) y = hn::Mul(y, hn::Set(d, w.scale));
    if (kReduction == Reduction::kAccumulate) y = hn::Add(y, load(out));
    if (kTail) {
      StoreFirst(y, out, lanes);
    } else {
      hn::StoreU(y, d, out);
    }
  }
}

// body(w) for each window.
template <typename Window, typename Body>
HWY_INLINE void ForEach(Window w, const Body& body) {
  for (; w.count > 0; --w.count, w.in += w.in_step, w.out += w.out_step) body(w);
}

template <Reduction kReduction>
void Reduce(const PoolWindow& windows) {
  ForEach(windows, [](const PoolWindow& w) HWY_ATTR {
    int64_t channel = 0;
    for (; channel + 4 * kLanes <= w.channels; channel += 4 * kLanes)
      ReduceChannels<kReduction, 4, false>(w, channel, kLanes);
    for (; channel + kLanes <= w.channels; channel += kLanes) ReduceChannels<kReduction, 1, false>(w, channel, kLanes);
    if (channel < w.channels)
      ReduceChannels<kReduction, 1, true>(w, channel, static_cast<size_t>(w.channels - channel));
  });
}

HWY_INLINE void MaxOfBytes(const PoolWindowOf<int8_t>& w) {
  const hn::CappedTag<int8_t, 64> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t channel = 0; channel < w.channels; channel += lanes) {
    const int64_t n = HWY_MIN(lanes, w.channels - channel);
    HWY_ALIGN int8_t part[64] = {};
    const auto load = [&](const int8_t* p) HWY_ATTR {
      if (n == lanes) return hn::LoadU(d, p);
      std::memcpy(part, p, static_cast<size_t>(n));
      return hn::Load(d, part);
    };
    auto most = load(w.in + channel);
    for (int64_t row = 0; row < w.rows; ++row) {
      const int8_t* in = w.in + row * w.row_stride + channel;
      for (int64_t col = 0; col < w.cols; ++col, in += w.col_stride) most = hn::Max(most, load(in));
    }
    if (n == lanes) {
      hn::StoreU(most, d, w.out + channel);
    } else {
      hn::Store(most, d, part);
      std::memcpy(w.out + channel, part, static_cast<size_t>(n));
    }
  }
}

void MaxBytes(const PoolWindowOf<int8_t>& windows) {
  ForEach(windows, [](const PoolWindowOf<int8_t>& w) HWY_ATTR { MaxOfBytes(w); });
}

// The taps are numbered as they come; f(number, element of `in`, element of `out`) for each.
template <typename F>
HWY_INLINE void ForTaps(const PoolRoute& w, int64_t channel, const F& f) {
  int32_t tap = 0;
  for (int64_t row = 0; row < w.rows; ++row) {
    const float* in = w.in + row * w.row_stride + channel;
    float* out = w.out + row * w.out_row_stride + channel;
    for (int64_t col = 0; col < w.cols; ++col, in += w.col_stride, out += w.out_col_stride) f(tap++, in, out);
  }
}

template <bool kTail>
HWY_INLINE void RouteChannels(const PoolRoute& w, int64_t channel, size_t lanes) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? LoadFirst(p, lanes) : hn::LoadU(d, p); };
  const VF gradient = load(w.gradient + channel);
  VF best = load(w.in + channel);
  auto at = hn::Zero(di);
  ForTaps(w, channel, [&](int32_t tap, const float* in, float* /*out*/) HWY_ATTR {
    const VF value = load(in);
    const auto takes = hn::Or(hn::Gt(value, best), hn::IsNaN(value));
    best = hn::IfThenElse(takes, value, best);
    at = hn::IfThenElse(hn::RebindMask(di, takes), hn::Set(di, tap), at);
  });
  ForTaps(w, channel, [&](int32_t tap, const float* /*in*/, float* out) HWY_ATTR {
    VF given = hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(at, hn::Set(di, tap))), gradient);
    if (!w.stores) given = hn::Add(load(out), given);
    if (kTail) {
      StoreFirst(given, out, lanes);
    } else {
      hn::StoreU(given, d, out);
    }
  });
}

void Route(const PoolRoute& w) {
  int64_t channel = 0;
  for (; channel + kLanes <= w.channels; channel += kLanes) RouteChannels<false>(w, channel, kLanes);
  if (channel < w.channels) RouteChannels<true>(w, channel, static_cast<size_t>(w.channels - channel));
}

const PoolTable* Table() {
  static constexpr PoolTable kTable = {&Reduce<Reduction::kMax>, &MaxBytes, &Reduce<Reduction::kSum>,
                                       &Reduce<Reduction::kAccumulate>, &Route};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const PoolTable& pool_table() { return *HETNN_CHOSEN(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
