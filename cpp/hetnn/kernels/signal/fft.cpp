// Transforms split by the factors of their length, in order at every step (Stockham, after Cochran et al., 1967).
#include "hetnn/kernels/signal/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/signal/fft.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/move/transpose-inl.h"
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kElement = 2 * kLanes;  // floats of one element of all lines

struct Complex {
  VF re, im;
};

HWY_INLINE Complex Read(const float* at) { return {hn::LoadU(DF(), at), hn::LoadU(DF(), at + kLanes)}; }
HWY_INLINE void Write(Complex v, float* at) {
  hn::StoreU(v.re, DF(), at);
  hn::StoreU(v.im, DF(), at + kLanes);
}
HWY_INLINE Complex Sum(Complex a, Complex b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Complex Difference(Complex a, Complex b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
HWY_INLINE Complex Product(Complex a, Complex w) {
  return {hn::NegMulAdd(a.im, w.im, hn::Mul(a.re, w.re)), hn::MulAdd(a.im, w.re, hn::Mul(a.re, w.im))};
}

/// The k-th of the plan's roots.
HWY_INLINE Complex Root(const FftPlan& plan, int64_t k) {
  const float* root = plan.roots.data() + 2 * k;
  return {Const(root[0]), Const(root[1])};
}

/// One factor of the length taken off: lines of n elements, `stride` of them interleaved, become as many of n / radix.
struct Pass {
  const FftPlan* plan;
  int64_t n, stride, radix;
  int64_t turn;  // from one root of n to the next
  const float* x;
  float* y;
  float* part;
  // What of it is done: x begins with element `x_first`, and goes on to the next summand by `x_step`; and y.
  int64_t j_begin = 0, j_end = n / radix, q_begin = 0, q_end = stride;
  int64_t x_first = 0, x_step = stride * (n / radix), y_first = 0, y_step = stride;

  const float* in(int64_t j, int64_t q) const { return x + (q + stride * j - x_first) * kElement; }
  float* out(int64_t j, int64_t q) const { return y + (q + stride * radix * j - y_first) * kElement; }
  HWY_INLINE Complex root(int64_t k) const { return Root(*plan, k * turn); }
};

/// The outputs of one butterfly, each turned by its root unless all of these are 1.
template <bool kTurns>
HWY_INLINE void Put(Complex v, Complex w, float* at) {
  Write(kTurns ? Product(v, w) : v, at);
}

/// The transform of four numbers, forward.
struct Four {
  Complex at[4];
  HWY_INLINE Four(Complex a, Complex b, Complex c, Complex d) {
    const Complex even = Sum(a, c), odd = Difference(a, c), cross = Sum(b, d), turned = Difference(b, d);
    at[0] = Sum(even, cross);
    at[1] = {hn::Add(odd.re, turned.im), hn::Sub(odd.im, turned.re)};
    at[2] = Difference(even, cross);
    at[3] = {hn::Sub(odd.re, turned.im), hn::Add(odd.im, turned.re)};
  }
};

/// Of two or four elements x_step apart to as many y_step apart. Back, the outputs but the first come in the other
/// order.
template <int64_t kRadix, bool kInverse, bool kTurns>
HWY_INLINE void Butterfly(const float* x, int64_t x_step, const Complex* w, float* y, int64_t y_step) {
  constexpr auto place = [](int64_t k) { return kInverse && k > 0 ? kRadix - k : k; };
  const auto put = [&](int64_t k, Complex v) HWY_ATTR { Put<kTurns>(v, w[place(k)], y + place(k) * y_step); };
  if constexpr (kRadix == 2) {
    const Complex a = Read(x), b = Read(x + x_step);
    Write(Sum(a, b), y);
    put(1, Difference(a, b));
  } else {
    const Four four(Read(x), Read(x + x_step), Read(x + 2 * x_step), Read(x + 3 * x_step));
    Write(four.at[0], y);
    put(1, four.at[1]);
    put(2, four.at[2]);
    put(3, four.at[3]);
  }
}

template <int64_t kRadix, bool kInverse>
void PassEven(const Pass& p) {
  const int64_t x_step = p.x_step * kElement, y_step = p.y_step * kElement, count = p.q_end - p.q_begin;
  for (int64_t j = p.j_begin; j < p.j_end; ++j) {
    Complex w[kRadix];
    for (int64_t k = 1; k < kRadix; ++k) w[k] = p.root(j * k);
    const float* x = p.in(j, p.q_begin);
    float* y = p.out(j, p.q_begin);
    const auto each = [&](auto turns) HWY_ATTR {
      for (int64_t q = 0; q < count; ++q, x += kElement, y += kElement)
        Butterfly<kRadix, kInverse, turns.value>(x, x_step, w, y, y_step);
    };
    j == 0 ? each(std::false_type()) : each(std::true_type());
  }
}

// An odd number of elements: pairs j and p - j have sums and differences in common. `kRadix` 0: as the pass says.
template <int64_t kRadix>
void PassOdd(const Pass& p) {
  const int64_t radix = kRadix == 0 ? p.radix : kRadix, half = radix / 2;
  const int64_t sector = p.turn * (p.n / radix);  // from one root of the radix to the next
  const int64_t x_step = p.x_step * kElement, y_step = p.y_step * kElement;
  for (int64_t j = p.j_begin; j < p.j_end; ++j) {
    for (int64_t q = p.q_begin; q < p.q_end; ++q) {
      const float* x = p.in(j, q);
      float* y = p.out(j, q);
      const Complex a = Read(x);
      Complex total = a;
      for (int64_t k = 1; k <= half; ++k) {
        const Complex low = Read(x + k * x_step), high = Read(x + (radix - k) * x_step), sum = Sum(low, high);
        total = Sum(total, sum);
        Write(sum, p.part + (2 * k - 2) * kElement);
        Write(Difference(low, high), p.part + (2 * k - 1) * kElement);
      }
      Write(total, y);
      for (int64_t k = 1; k <= half; ++k) {
        Complex even = a, odd{hn::Zero(DF()), hn::Zero(DF())};
        for (int64_t i = 1, at = k; i <= half; ++i, at += at + k < radix ? k : k - radix) {
          const Complex turn = Root(*p.plan, at * sector), sum = Read(p.part + (2 * i - 2) * kElement),
                        difference = Read(p.part + (2 * i - 1) * kElement);
          even = {hn::MulAdd(turn.re, sum.re, even.re), hn::MulAdd(turn.re, sum.im, even.im)};
          odd = {hn::MulAdd(turn.im, difference.re, odd.re), hn::MulAdd(turn.im, difference.im, odd.im)};
        }
        const Complex first{hn::Sub(even.re, odd.im), hn::Add(even.im, odd.re)};
        const Complex last{hn::Add(even.re, odd.im), hn::Sub(even.im, odd.re)};
        Write(j == 0 ? first : Product(first, p.root(j * k)), y + k * y_step);
        Write(j == 0 ? last : Product(last, p.root(j * (radix - k))), y + (radix - k) * y_step);
      }
    }
  }
}

template <int64_t kRadix>
void RunEven(const Pass& pass) {
  (pass.plan->inverse ? PassEven<kRadix, true> : PassEven<kRadix, false>)(pass);
}

void Run(const Pass& pass) {
  pass.radix == 4   ? RunEven<4>(pass)
  : pass.radix == 2 ? RunEven<2>(pass)
  : pass.radix == 3 ? PassOdd<3>(pass)
  : pass.radix == 5 ? PassOdd<5>(pass)
                    : PassOdd<0>(pass);
}

// The first pass, from rows instead of lines, a tile at a time.
void RunFromRows(Pass pass, const float* rows, int64_t ld, float* tile) {
  pass.x = tile;
  pass.x_step = kFftTile;
  const int64_t apart = pass.n / pass.radix;
  for (int64_t j = 0; j < apart; j += kFftTile) {
    const int64_t count = std::min(kFftTile, apart - j);
    for (int64_t k = 0; k < pass.radix; ++k)
      Transpose(rows + 2 * (j + apart * k), ld, tile + k * kFftTile * kElement, kLanes, kLanes, 2 * count);
    pass.x_first = pass.j_begin = j;
    pass.j_end = j + count;
    Run(pass);
  }
}

// The last pass, to rows.
void RunToRows(Pass pass, float* rows, int64_t ld, float* tile) {
  pass.y = tile;
  pass.y_step = kFftTile;
  for (int64_t q = 0; q < pass.stride; q += kFftTile) {
    const int64_t count = std::min(kFftTile, pass.stride - q);
    pass.y_first = pass.q_begin = q;
    pass.q_end = q + count;
    Run(pass);
    for (int64_t k = 0; k < pass.radix; ++k)
      Transpose(tile + k * kFftTile * kElement, kLanes, rows + 2 * (q + pass.stride * k), ld, 2 * count, kLanes);
  }
}

float* Transform(const FftPlan& plan, const FftRows& rows, float* lines, float* spare, float* part) {
  float* const tile = part + part_floats(plan) - kFftTile * kMostRowRadix * kElement;
  int64_t n = plan.length, stride = 1;
  for (const int64_t radix : plan.radices) {
    const Pass pass{&plan, n, stride, radix, plan.length / n * plan.root_step, lines, spare, part};
    n /= radix;
    stride *= radix;
    if (stride == radix && rows.from) {
      RunFromRows(pass, rows.from, rows.from_ld, tile);
    } else if (n == 1 && rows.to) {
      RunToRows(pass, rows.to, rows.to_ld, tile);
    } else {
      Run(pass);
    }
    std::swap(lines, spare);
  }
  return lines;
}

void ReadPairs(const float* x, int64_t step, int64_t count, float* lines) {
  for (int64_t k = 0; k < count; ++k) {
    Complex v;
    hn::LoadInterleaved2(DF(), x + k * step, v.re, v.im);
    Write(v, lines + k * kElement);
  }
}

void WritePairs(const float* lines, int64_t count, float* y, int64_t step) {
  for (int64_t k = 0; k < count; ++k) {
    const Complex v = Read(lines + k * kElement);
    hn::StoreInterleaved2(v.re, v.im, DF(), y + k * step);
  }
}

HWY_INLINE Complex Conjugate(Complex v) { return {v.re, hn::Neg(v.im)}; }

// Of the transform Z of M pairs, E = (Z[k] + conj Z[M-k]) / 2 and O = (Z[k] - conj Z[M-k]) / 2i are those of the even
// and of the odd numbers. X[k] = E + w^k O, and X[M-k] = conj(E - w^k O).
void JoinHalves(const FftPlan& plan, const float* pairs, float* reals) {
  const int64_t half = plan.length;
  const VF zero = hn::Zero(DF()), middle = Const(0.5f);
  for (int64_t k = 0; 2 * k <= half; ++k) {
    const Complex w{Const(plan.roots[static_cast<size_t>(2 * k)]), Const(plan.roots[static_cast<size_t>(2 * k + 1)])};
    const Complex low = Read(pairs + k * kElement);
    const Complex high = Conjugate(Read(pairs + (k == 0 ? 0 : half - k) * kElement));
    const Complex even = Sum(low, high), odd = Difference(low, high);
    const Complex turned = Product({odd.im, hn::Neg(odd.re)}, w);
    const Complex first = Sum(even, turned), last = Difference(even, turned);
    Write({hn::Mul(middle, first.re), k == 0 ? zero : hn::Mul(middle, first.im)}, reals + k * kElement);
    if (2 * k < half || k == 0)
      Write({hn::Mul(middle, last.re), k == 0 ? zero : hn::Neg(hn::Mul(middle, last.im))},
            reals + (half - k) * kElement);
  }
}

void SplitHalves(const FftPlan& plan, const float* reals, float scale, float* pairs) {
  const int64_t half = plan.length;
  const VF factor = Const(scale), zero = hn::Zero(DF());
  for (int64_t k = 0; 2 * k <= half; ++k) {
    const Complex w{Const(plan.roots[static_cast<size_t>(2 * k)]), Const(plan.roots[static_cast<size_t>(2 * k + 1)])};
    Complex low = Read(reals + k * kElement), high = Conjugate(Read(reals + (half - k) * kElement));
    if (k == 0) low.im = high.im = zero;  // they have no phase
    const Complex even = Sum(low, high), odd = Product(Difference(low, high), w);
    Write({hn::Mul(factor, hn::Sub(even.re, odd.im)), hn::Mul(factor, hn::Add(even.im, odd.re))}, pairs + k * kElement);
    if (k > 0 && 2 * k < half)
      Write({hn::Mul(factor, hn::Add(even.re, odd.im)), hn::Mul(factor, hn::Sub(odd.re, even.im))},
            pairs + (half - k) * kElement);
  }
}

void Scale(float* values, int64_t count, float factor) {
  for (int64_t k = 0; k < count; k += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(DF(), values + k), Const(factor)), DF(), values + k);
}

const FftOps* Table() {
  static constexpr FftOps kTable = {kLanes, &Transform, &ReadPairs, &WritePairs, &JoinHalves, &SplitHalves, &Scale};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

FftPlan plan_fft(int64_t length, bool inverse, int64_t fine) {
  FftPlan out{.length = length, .inverse = inverse, .radices = {}, .roots = {}, .root_step = fine};
  int64_t rest = length;
  const auto take = [&](int64_t radix) {
    for (; rest % radix == 0; rest /= radix) out.radices.push_back(radix);
  };
  for (const int64_t radix : {4, 2, 3, 5}) take(radix);
  for (int64_t radix = 7; radix * radix <= rest; radix += 2) take(radix);
  if (rest > 1) out.radices.push_back(rest);
  const int64_t roots = length * fine;
  const double turn = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(roots);
  for (int64_t k = 0; k < roots; ++k) {
    out.roots.push_back(static_cast<float>(std::cos(turn * static_cast<double>(k))));
    out.roots.push_back(static_cast<float>(std::sin(turn * static_cast<double>(k))));
  }
  return out;
}

int64_t part_floats(const FftPlan& plan) {
  const int64_t most = plan.radices.empty() ? 1 : *std::ranges::max_element(plan.radices);
  return 2 * (most + kFftTile * kMostRowRadix) * kMostFftLanes;
}

bool takes_rows(const FftPlan& plan) {
  return plan.radices.size() > 1 && plan.radices.front() <= kMostRowRadix && plan.radices.back() <= kMostRowRadix;
}

const FftOps& fft_ops() { return *HETNN_CHOSEN(Table)(); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
