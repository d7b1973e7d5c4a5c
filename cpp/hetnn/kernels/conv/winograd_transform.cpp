// Winograd transforms for each instruction set.
#include "hetnn/kernels/conv/winograd_transform.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/winograd_transform.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/conv/winograd_both-inl.h"
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr auto kA = static_cast<float>(kWinogradA), kB = static_cast<float>(kWinogradB);
constexpr float kA2 = kA * kA, kB2 = kB * kB;

// How tiles of so many outputs a side are transformed along one axis.
template <int kSide>
struct Along;

template <>
struct Along<4> {
  // t = B^T d. Row i of B^T holds the coefficients of the product of (x - p) over the points p other than point i; the
  // even and odd parts of the rows of +p and -p are shared.
  static HWY_INLINE void Input(const VF* d, VF* t) {
    const VF d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3], d4 = d[4], d5 = d[5];
    const VF product = Const(kA2 * kB2), sum = Const(kA2 + kB2);
    t[0] = hn::MulAdd(product, d0, hn::NegMulAdd(sum, d2, d4));
    const VF even_a = hn::NegMulAdd(Const(kB2), d2, d4);
    const VF odd_a = hn::NegMulAdd(Const(kB2), d1, d3);
    t[1] = hn::MulAdd(Const(kA), odd_a, even_a);
    t[2] = hn::NegMulAdd(Const(kA), odd_a, even_a);
    const VF even_b = hn::NegMulAdd(Const(kA2), d2, d4);
    const VF odd_b = hn::NegMulAdd(Const(kA2), d1, d3);
    t[3] = hn::MulAdd(Const(kB), odd_b, even_b);
    t[4] = hn::NegMulAdd(Const(kB), odd_b, even_b);
    t[5] = hn::MulAdd(product, d1, hn::NegMulAdd(sum, d3, d5));
  }

  // y = A^T m: y_r = sum of p^r m_p over the points, and m_infinity in the last.
  static HWY_INLINE void Output(const VF* m, VF* y) {
    const VF plus_a = hn::Add(m[1], m[2]), minus_a = hn::Sub(m[1], m[2]);
    const VF plus_b = hn::Add(m[3], m[4]), minus_b = hn::Sub(m[3], m[4]);
    y[0] = hn::Add(m[0], hn::Add(plus_a, plus_b));
    y[1] = hn::MulAdd(Const(kA), minus_a, hn::Mul(Const(kB), minus_b));
    y[2] = hn::MulAdd(Const(kA2), plus_a, hn::Mul(Const(kB2), plus_b));
    y[3] = hn::Add(m[5], hn::MulAdd(Const(kA2 * kA), minus_a, hn::Mul(Const(kB2 * kB), minus_b)));
  }
};

template <>
struct Along<2> {
  static HWY_INLINE void Input(const VF* d, VF* t) {
    const VF d1 = d[1], d2 = d[2];
    t[0] = hn::Sub(d[0], d2);
    t[1] = hn::Add(d2, d1);
    t[2] = hn::Sub(d2, d1);
    t[3] = hn::Sub(d[3], d1);
  }
  static HWY_INLINE void Output(const VF* m, VF* y) {
    const VF m1 = m[1], m2 = m[2];
    y[0] = hn::Add(m[0], hn::Add(m1, m2));
    y[1] = hn::Add(m[3], hn::Sub(m1, m2));
  }
};

// Zero as far as all is finite. The first and the last point of rows and columns read every pixel.
template <int kSide, bool kLine, bool kTail>
HWY_INLINE VF InputChannels(const WinogradInputTile& t, int64_t channel, size_t lanes) {
  constexpr int kInputs = kSide + 2;
  const DF d;
  VF ends = hn::Zero(d);
  const auto load = [&](int i, int j) HWY_ATTR {
    const float* from = t.pixels[i * kInputs + j] + channel;
    return kTail ? LoadFirst(from, lanes) : hn::LoadU(d, from);
  };
  const auto store = [&](int i, int j, VF y) HWY_ATTR {
    float* to = t.to + (i * kInputs + j) * t.point_stride + channel;
    if (kTail) {
      StoreFirst(y, to, lanes);
    } else {
      hn::StoreU(y, d, to);
    }
    if ((kLine || i % (kInputs - 1) == 0) && j % (kInputs - 1) == 0) ends = hn::Add(ends, y);
  };
  if (t.next != nullptr) {  // what the tile above has not read, nor this one
    for (int i = kLine ? 0 : 2; i < (kLine ? 1 : kInputs); ++i)
      for (int j = 2; j < kInputs; ++j) __builtin_prefetch(t.next[i * kInputs + j] + channel, 0, 3);
  }
  if constexpr (kLine) {
    VF points[kInputs], result[kInputs];
    HETNN_UNROLL
    for (int j = 0; j < kInputs; ++j) points[j] = load(0, j);
    Along<kSide>::Input(points, result);
    HETNN_UNROLL
    for (int j = 0; j < kInputs; ++j) store(0, j, result[j]);
  } else {
    TransformBoth<VF, kInputs, kInputs>(
        load, [](const VF* p, VF* y) HWY_ATTR { Along<kSide>::Input(p, y); }, store);
  }
  return hn::Sub(ends, ends);
}

template <int kSide, bool kLine>
bool InputTile(const WinogradInputTile& t) {
  const DF d;
  VF zero = hn::Zero(d);
  int64_t channel = 0;
  for (; channel + kLanes <= t.channels; channel += kLanes)
    zero = hn::Add(zero, InputChannels<kSide, kLine, false>(t, channel, kLanes));
  if (channel < t.channels)
    zero = hn::Add(zero, InputChannels<kSide, kLine, true>(t, channel, static_cast<size_t>(t.channels - channel)));
  return hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)));
}

// Whether all m are: each is a term of the sums in the first and in the last column of rows.
template <int kRows, int kOutputs>
HWY_INLINE bool AreFinite(const VF (&rows)[kRows][kOutputs]) {
  const DF d;
  VF sum = hn::Add(rows[0][0], rows[0][kOutputs - 1]);
  HETNN_UNROLL
  for (int i = 1; i < kRows; ++i) sum = hn::Add(sum, hn::Add(rows[i][0], rows[i][kOutputs - 1]));
  return hn::AllTrue(d, hn::Eq(hn::Sub(sum, sum), hn::Zero(d)));
}

// What follows a vector of outputs' sums, the same for all of a tile's.
template <bool kTail>
class Finish {
 public:
  HWY_INLINE Finish(const WinogradOutputTile& t, int64_t channel, size_t lanes)
      : t_(t),
        channel_(channel),
        lanes_(lanes),
        bias_(t.bias == nullptr ? hn::Zero(DF()) : Load(t.bias + channel)),
        lo_(Const(t.lo)),
        hi_(Const(t.hi)),
        scale_(Const(t.addend_scale)),
        slopes_(t.slopes == nullptr ? hn::Zero(DF())
                : t.slope_step == 0 ? Const(*t.slopes)
                                    : Load(t.slopes + channel)) {}

  HWY_INLINE VF Load(const float* p) const { return kTail ? LoadFirst(p, lanes_) : hn::LoadU(DF(), p); }

  HWY_INLINE void Store(int64_t i, int64_t j, VF sum) const {
    VF y = hn::Add(sum, bias_);
    if (t_.addend != nullptr)
      y = hn::MulAdd(Load(t_.addend + i * t_.addend_row + j * t_.addend_pixel + channel_), scale_, y);
    if (t_.slopes != nullptr) y = Sloped(y, slopes_);
    y = AtMost(hi_, AtLeast(lo_, y));
    float* out = t_.out + i * t_.out_row + j * t_.out_pixel + channel_;
    if (kTail) {
      StoreFirst(y, out, lanes_);
    } else {
      hn::StoreU(y, DF(), out);
    }
  }

 private:
  const WinogradOutputTile& t_;
  int64_t channel_;
  size_t lanes_;
  VF bias_, lo_, hi_, scale_, slopes_;
};

// Of products, 6x6 or 4x4, of a line 6. False where one is not finite: then nothing is written.
template <int kSide, bool kLine, bool kTail>
HWY_INLINE bool OutputChannels(const WinogradOutputTile& t, int64_t channel, size_t lanes) {
  constexpr int kInputs = kSide + 2, kRows = kLine ? 1 : kInputs, kResults = kLine ? 1 : kSide;
  const Finish<kTail> finish(t, channel, lanes);
  VF rows[kRows][kSide];
  HETNN_UNROLL
  for (int i = 0; i < kRows; ++i) {
    VF points[kInputs];
    HETNN_UNROLL
    for (int j = 0; j < kInputs; ++j) points[j] = finish.Load(t.from + (i * kInputs + j) * t.point_stride + channel);
    Along<kSide>::Output(points, rows[i]);
  }
  if (!AreFinite(rows)) return false;
  HETNN_UNROLL
  for (int j = 0; j < kSide; ++j) {
    if (j >= t.cols) break;
    VF result[kSide];
    if constexpr (kLine) {
      result[0] = rows[0][j];
    } else {
      VF column[kInputs];
      HETNN_UNROLL
      for (int i = 0; i < kInputs; ++i) column[i] = rows[i][j];
      Along<kSide>::Output(column, result);
    }
    HETNN_UNROLL
    for (int i = 0; i < kResults; ++i) {
      if (i >= t.rows) break;
      finish.Store(i, j, result[i]);
    }
  }
  return true;
}

template <int kSide, bool kLine>
int64_t OutputTile(const WinogradOutputTile& t) {
  int64_t channel = 0;
  for (; channel + kLanes <= t.channels; channel += kLanes)
    if (!OutputChannels<kSide, kLine, false>(t, channel, kLanes)) return channel;
  const bool tail = channel < t.channels;
  if (tail && !OutputChannels<kSide, kLine, true>(t, channel, static_cast<size_t>(t.channels - channel)))
    return channel;
  return t.channels;
}

template <int kSide>
void OutputTileOfSums(const WinogradOutputTile& t, int64_t channel) {
  for (; channel < t.channels; channel += kLanes) {
    const Finish<true> finish(t, channel, static_cast<size_t>(HWY_MIN(t.channels - channel, int64_t{kLanes})));
    for (int64_t i = 0; i < t.rows; ++i)
      for (int64_t j = 0; j < t.cols; ++j)
        finish.Store(i, j, finish.Load(t.from + (i * kSide + j) * t.point_stride + channel));
  }
}

int64_t FindNonFinite(const float* const* pixels, int64_t points, int64_t channels, WinogradElements* found,
                      int64_t most) {
  const DF d;
  const WinogradElements* const begin = found;
  for (int64_t point = 0; point < points; ++point) {
    for (int64_t channel = 0; channel < channels; channel += kLanes) {
      const float* const at = pixels[point] + channel;
      const int64_t left = channels - channel;
      const VF x = left >= kLanes ? hn::LoadU(d, at) : LoadFirst(at, static_cast<size_t>(left));
      const auto is_finite = hn::Eq(hn::Sub(x, x), hn::Zero(d));
      if (hn::AllTrue(d, is_finite)) continue;
      uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, hn::Not(is_finite), bytes);
      uint64_t lanes = 0;
      for (size_t k = 0; k < 8; ++k) lanes |= uint64_t{bytes[k]} << 8 * k;
      most -= std::popcount(lanes);
      if (most < 0) return -1;
      *found++ = {static_cast<int32_t>(point), static_cast<int32_t>(channel), lanes};
    }
  }
  return found - begin;
}

void AddProducts(const WinogradProducts& t) {
  constexpr int64_t kColumns = 16, kTaps = 3;
  const DF d;
  const int64_t inputs = t.cols + kTaps - 1;
  int64_t r = 0;
  for (const WinogradElements* e = t.elements; e < t.elements + t.count; ++e) {
    while (e->point >= (r + 1) * inputs) ++r;
    const int64_t c = e->point - r * inputs;
    e->for_each([&](int64_t channel) HWY_ATTR {
      const VF x = hn::Set(d, t.pixels[e->point][channel]);
      const float* const of_channel = t.weights + channel * kColumns;
      for (int64_t i = HWY_MAX(int64_t{0}, r - kTaps + 1); i <= HWY_MIN(r, t.rows - 1); ++i) {
        for (int64_t j = HWY_MAX(int64_t{0}, c - kTaps + 1); j <= HWY_MIN(c, t.cols - 1); ++j) {
          const float* weights = of_channel + (r - i) * t.row_stride + (c - j) * t.column_stride;
          float* sums = t.sums + (i * t.cols + j) * t.sum_stride;
          for (int64_t panel = 0; panel < t.panels; ++panel, weights += t.panel_stride, sums += kColumns)
            for (int64_t k = 0; k < kColumns; k += kLanes)
              hn::StoreU(hn::MulAdd(x, hn::LoadU(d, weights + k), hn::LoadU(d, sums + k)), d, sums + k);
        }
      }
    });
  }
}

void TransformWeights(const WinogradWeights& t) {
  constexpr int kTaps = 3, kPoints = kTaps + 1;
  const DF d;
  // (w0, (w0 + w1 + w2) / 2, (w0 - w1 + w2) / 2, w2)
  const auto transform = [](const VF* w, VF* u) HWY_ATTR {
    const VF half = Const(0.5F), middle = hn::Mul(half, w[1]), ends = hn::Add(w[0], w[2]);
    u[0] = w[0];
    u[1] = hn::MulAdd(half, ends, middle);
    u[2] = hn::MulSub(half, ends, middle);
    u[3] = w[2];
  };
  const float* HWY_RESTRICT from = t.from;
  float* HWY_RESTRICT to = t.to;
  const int64_t elems = t.elems, tap = t.tap_stride, point = t.point_stride;
  for (int64_t e = 0; e < elems; e += kLanes, from += kLanes, to += kLanes)
    TransformBoth<VF, kTaps, kPoints>(
        [&](int r, int c) HWY_ATTR { return hn::LoadU(d, from + (r * kTaps + c) * tap); }, transform,
        [&](int i, int j, VF u) HWY_ATTR { hn::StoreU(u, d, to + (i * kPoints + j) * point); });
}

template <int kSide, bool kLine>
constexpr WinogradTable kTableOf = {
    &InputTile<kSide, kLine>, &OutputTile<kSide, kLine>, &OutputTileOfSums<kSide>, &FindNonFinite, &AddProducts,
    &TransformWeights};

const WinogradTable* Table(int64_t side, bool lines) {
  return lines ? &kTableOf<4, true> : side == 4 ? &kTableOf<4, false> : &kTableOf<2, false>;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const WinogradTable& winograd_table(int64_t side, bool lines) { return *HETNN_CHOSEN(Table)(side, lines); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
