// Transforms split by the factors of their length, in order at every step (Stockham, after Cochran et al., 1967).
#include "hetnn/kernels/signal/fft.h"

#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/signal/fft.cpp"
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

/// exp(∓2πi k / of), of a divisor of the length.
HWY_INLINE Complex Root(const FftPlan& plan, int64_t k, int64_t of) {
  const float* root = plan.roots.data() + 2 * (k % of * (plan.length / of) * plan.root_step);
  return {Const(root[0]), Const(root[1])};
}

/// One factor of the length taken off: lines of n elements, `stride` of them interleaved, become as many of n / radix.
struct Pass {
  const FftPlan* plan;
  int64_t n, stride, radix;
  const float* x;
  float* y;
  float* part;

  const float* in(int64_t j, int64_t q, int64_t k) const { return x + (q + stride * (j + n / radix * k)) * kElement; }
  float* out(int64_t j, int64_t q, int64_t k) const { return y + (q + stride * (radix * j + k)) * kElement; }
  HWY_INLINE void write(Complex v, int64_t j, int64_t q, int64_t k, const Complex& turn) const {
    Write(j == 0 || k == 0 ? v : Product(v, turn), out(j, q, k));
  }
};

void Pass2(const Pass& p) {
  for (int64_t j = 0; j < p.n / 2; ++j) {
    const Complex w = Root(*p.plan, j, p.n);
    for (int64_t q = 0; q < p.stride; ++q) {
      const Complex a = Read(p.in(j, q, 0)), b = Read(p.in(j, q, 1));
      Write(Sum(a, b), p.out(j, q, 0));
      p.write(Difference(a, b), j, q, 1, w);
    }
  }
}

void Pass4(const Pass& p) {
  // A quarter turn is one way forward and the other way back: the outputs 1 and 3 change places.
  const int64_t first = p.plan->inverse ? 3 : 1, third = 4 - first;
  for (int64_t j = 0; j < p.n / 4; ++j) {
    const Complex w1 = Root(*p.plan, j * first, p.n), w2 = Root(*p.plan, j * 2, p.n),
                  w3 = Root(*p.plan, j * third, p.n);
    for (int64_t q = 0; q < p.stride; ++q) {
      const Complex a = Read(p.in(j, q, 0)), b = Read(p.in(j, q, 1)), c = Read(p.in(j, q, 2)), d = Read(p.in(j, q, 3));
      const Complex even = Sum(a, c), odd = Difference(a, c), cross = Sum(b, d), turned = Difference(b, d);
      Write(Sum(even, cross), p.out(j, q, 0));
      p.write({hn::Add(odd.re, turned.im), hn::Sub(odd.im, turned.re)}, j, q, first, w1);
      p.write(Difference(even, cross), j, q, 2, w2);
      p.write({hn::Sub(odd.re, turned.im), hn::Add(odd.im, turned.re)}, j, q, third, w3);
    }
  }
}

// An odd number of elements: pairs j and p - j have sums and differences in common. `kRadix` 0: as the pass says.
template <int64_t kRadix>
void PassOdd(const Pass& p) {
  const int64_t radix = kRadix == 0 ? p.radix : kRadix, half = radix / 2;
  const Pass own{p.plan, p.n, p.stride, radix, p.x, p.y, p.part};
  for (int64_t j = 0; j < own.n / radix; ++j) {
    for (int64_t q = 0; q < own.stride; ++q) {
      const Complex a = Read(own.in(j, q, 0));
      Complex total = a;
      for (int64_t k = 1; k <= half; ++k) {
        const Complex low = Read(own.in(j, q, k)), high = Read(own.in(j, q, radix - k)), sum = Sum(low, high);
        total = Sum(total, sum);
        Write(sum, own.part + (2 * k - 2) * kElement);
        Write(Difference(low, high), own.part + (2 * k - 1) * kElement);
      }
      Write(total, own.out(j, q, 0));
      for (int64_t k = 1; k <= half; ++k) {
        Complex even = a, odd{hn::Zero(DF()), hn::Zero(DF())};
        for (int64_t i = 1; i <= half; ++i) {
          const Complex turn = Root(*own.plan, i * k, radix), sum = Read(own.part + (2 * i - 2) * kElement),
                        difference = Read(own.part + (2 * i - 1) * kElement);
          even = {hn::MulAdd(turn.re, sum.re, even.re), hn::MulAdd(turn.re, sum.im, even.im)};
          odd = {hn::MulAdd(turn.im, difference.re, odd.re), hn::MulAdd(turn.im, difference.im, odd.im)};
        }
        own.write({hn::Sub(even.re, odd.im), hn::Add(even.im, odd.re)}, j, q, k, Root(*own.plan, j * k, own.n));
        own.write({hn::Add(even.re, odd.im), hn::Sub(even.im, odd.re)}, j, q, radix - k,
                  Root(*own.plan, j * (radix - k), own.n));
      }
    }
  }
}

float* Transform(const FftPlan& plan, float* lines, float* spare, float* part) {
  int64_t n = plan.length, stride = 1;
  for (const int64_t radix : plan.radices) {
    const Pass pass{&plan, n, stride, radix, lines, spare, part};
    radix == 4   ? Pass4(pass)
    : radix == 2 ? Pass2(pass)
    : radix == 3 ? PassOdd<3>(pass)
    : radix == 5 ? PassOdd<5>(pass)
                 : PassOdd<0>(pass);
    std::swap(lines, spare);
    n /= radix;
    stride *= radix;
  }
  return lines;
}

const FftOps* Table() {
  static constexpr FftOps kTable = {kLanes, &Transform};
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

const FftOps& fft_ops() { return *HETNN_CHOSEN(Table)(); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
