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

enum class Reduction { kMax, kSum };

/// A window whose elements are of that type.
template <typename T>
struct Window : PoolWindow {
  explicit Window(const PoolWindow& w) : PoolWindow(w) {}
  const T* from() const { return reinterpret_cast<const T*>(in); }
  T* to() const { return reinterpret_cast<T*>(out); }
};

template <Reduction kReduction, int kVectors, bool kTail>
HWY_INLINE void ReduceChannels(const Window<float>& w, int64_t channel, size_t lanes) {
  const DF d;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? LoadFirst(p, lanes) : hn::LoadU(d, p); };
  VF acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    acc[v] = kReduction == Reduction::kMax ? load(w.from() + channel + v * kLanes) : hn::Zero(d);
  for (int64_t row = 0; row < w.rows; ++row) {
    const float* in = w.from() + row * w.row_stride + channel;
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
    float* out = w.to() + channel + v * kLanes;
    VF y = acc[v];
    if (kReduction == Reduction::kSum) y = hn::Mul(y, hn::Set(d, w.scale));
    if (kTail) {
      StoreFirst(y, out, lanes);
    } else {
      hn::StoreU(y, d, out);
    }
  }
}

// body(w) for each window.
template <typename T, typename Body>
HWY_INLINE void ForEach(const PoolWindow& windows, const Body& body) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  Window<T> w(windows);
  for (; w.count > 0; --w.count, w.in += w.in_step * kBytes, w.out += w.out_step * kBytes) body(w);
}

template <Reduction kReduction>
void Reduce(const PoolWindow& windows) {
  ForEach<float>(windows, [](const Window<float>& w) HWY_ATTR {
    int64_t channel = 0;
    for (; channel + 4 * kLanes <= w.channels; channel += 4 * kLanes)
      ReduceChannels<kReduction, 4, false>(w, channel, kLanes);
    for (; channel + kLanes <= w.channels; channel += kLanes) ReduceChannels<kReduction, 1, false>(w, channel, kLanes);
    if (channel < w.channels)
      ReduceChannels<kReduction, 1, true>(w, channel, static_cast<size_t>(w.channels - channel));
  });
}

// Of integers that are ordered as the values are: `rank` makes them, `value` makes values of them.
template <typename T, typename Rank, typename Value>
HWY_INLINE void MaxOfIntegers(const Window<T>& w, const Rank& rank, const Value& value) {
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t channel = 0; channel < w.channels; channel += lanes) {
    const int64_t n = HWY_MIN(lanes, w.channels - channel);
    HWY_ALIGN T part[64 / sizeof(T)] = {};
    const auto load = [&](const T* p) HWY_ATTR {
      if (n == lanes) return rank(hn::LoadU(d, p));
      std::memcpy(part, p, static_cast<size_t>(n) * sizeof(T));
      return rank(hn::Load(d, part));
    };
    auto most = load(w.from() + channel);
    for (int64_t row = 0; row < w.rows; ++row) {
      const T* in = w.from() + row * w.row_stride + channel;
      for (int64_t col = 0; col < w.cols; ++col, in += w.col_stride) most = hn::Max(most, load(in));
    }
    if (n == lanes) {
      hn::StoreU(value(most), d, w.to() + channel);
    } else {
      hn::Store(value(most), d, part);
      std::memcpy(w.to() + channel, part, static_cast<size_t>(n) * sizeof(T));
    }
  }
}

void MaxBytes(const PoolWindow& windows) {
  const auto same = [](auto x) HWY_ATTR { return x; };
  ForEach<int8_t>(windows, [&](const Window<int8_t>& w) HWY_ATTR { MaxOfIntegers(w, same, same); });
}

void MaxHalves(const PoolWindow& windows) {
  const hn::CappedTag<int16_t, 32> d;
  const auto magnitude = hn::Set(d, int16_t{0x7FFF}), infinity = hn::Set(d, windows.infinity);
  // Magnitudes of negative values grow downwards. The other way round it is the same.
  const auto turn = [=](auto x) HWY_ATTR { return hn::Xor(x, hn::And(hn::BroadcastSignBit(x), magnitude)); };
  // A NaN of either sign is above all.
  const auto rank = [=](auto x) HWY_ATTR {
    const auto size = hn::And(x, magnitude);
    return hn::IfThenElse(hn::Gt(size, infinity), size, turn(x));
  };
  ForEach<int16_t>(windows, [&](const Window<int16_t>& w) HWY_ATTR { MaxOfIntegers(w, rank, turn); });
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
  static constexpr PoolTable kTable = {&Reduce<Reduction::kMax>, &MaxBytes, &MaxHalves, &Reduce<Reduction::kSum>,
                                       &Route};
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
