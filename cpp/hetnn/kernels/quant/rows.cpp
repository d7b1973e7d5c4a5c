// Conversions of rows for each instruction set.
#include "hetnn/kernels/quant/rows.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <tuple>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/quant/rows.cpp"
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

void ToReals(const int8_t* x, int64_t n, float scale, int32_t zero, float* y) {
  const VF factor = Const(scale);
  const VI z = hn::Set(DI(), zero);
  const auto real = [&](VI q) HWY_ATTR { return hn::Mul(factor, hn::ConvertTo(DF(), hn::Sub(q, z))); };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(real(LoadBytes(x + i)), DF(), y + i);
  if (i < n) StoreFirst(real(LoadBytes(x + i, n - i)), y + i, static_cast<size_t>(n - i));
}

void ToIntegers(const float* x, int64_t n, float scale, int32_t zero, int8_t* y) {
  const VF divisor = Const(scale);
  const ToByte to_byte(-128, 127, zero);
  const auto byte = [&](VF real)
                        HWY_ATTR { return to_byte(hn::Div(hn::IfThenElseZero(hn::Eq(real, real), real), divisor)); };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreBytes(byte(hn::LoadU(DF(), x + i)), y + i);
  if (i < n) StoreBytes(byte(LoadFirst(x + i, static_cast<size_t>(n - i))), y + i, n - i);
}

void LookUp(const int8_t* x, int64_t n, const int8_t* table, int8_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = table[x[i] + 128];
}

#if HWY_TARGET == HWY_AVX3
// Entry x mod 128 of 128 bytes: one instruction, written as text since it needs no further target so.
HWY_INLINE hn::Vec<D8> EntryOf(hn::Vec<D8> x, hn::Vec<D8> low, hn::Vec<D8> high) {
  __asm__("vpermi2b %2, %1, %0" : "+v"(x.raw) : "v"(low.raw), "v"(high.raw));
  return x;
}
void LookUpVectors(const int8_t* x, int64_t n, const int8_t* table, int8_t* y) {
  const D8 d;
  const hn::Vec<D8> negative[2] = {hn::LoadU(d, table), hn::LoadU(d, table + 64)},
                    other[2] = {hn::LoadU(d, table + 128), hn::LoadU(d, table + 192)};
  for (int64_t i = 0; i < n; i += kBytes) {
    const hn::Vec<D8> at = LoadSome(x + i, n - i);
    const hn::Vec<D8> entry =
        hn::IfThenElse(hn::Lt(at, hn::Zero(d)), EntryOf(at, negative[0], negative[1]), EntryOf(at, other[0], other[1]));
    StoreSome(entry, y + i, n - i);
  }
}
#endif

// The sum of two bytes in steps of the result, near enough.
template <bool kQuick>
class Steps {
 public:
  HWY_INLINE explicit Steps(const ByteSum& s)
      : a_(Const(kQuick ? s.factor_a : s.a)),
        b_(Const(kQuick ? s.factor_b : s.b)),
        y_(Const(s.y)),
        last_(Const(kQuick ? s.offset : 1 / s.y)),
        zero_a_(hn::Set(DI(), s.a_zero)),
        zero_b_(hn::Set(DI(), s.b_zero)) {}
  HWY_INLINE VF operator()(VI p, VI q) const {
    if constexpr (kQuick) return hn::MulAdd(hn::ConvertTo(DF(), p), a_, hn::MulAdd(hn::ConvertTo(DF(), q), b_, last_));
    const VF real = hn::Add(hn::Mul(a_, hn::ConvertTo(DF(), hn::Sub(p, zero_a_))),
                            hn::Mul(b_, hn::ConvertTo(DF(), hn::Sub(q, zero_b_))));
    // A quotient by its inverse, and by what is left once more: the nearest (Markstein).
    const VF near = hn::Mul(real, last_);
    return hn::MulAdd(hn::NegMulAdd(near, y_, real), last_, near);
  }

 private:
  VF a_, b_, y_, last_;
  VI zero_a_, zero_b_;
};

template <bool kQuick>
void Sum(const ByteSum& s, const SumBlock& block) {
  const Steps<kQuick> steps(s);
#if HWY_TARGET == HWY_SCALAR
  const ToByte to_byte(s.low, s.high, s.y_zero);
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t i = 0; i < block.n; ++i)
      StoreBytes(to_byte(steps(LoadBytes(block.a + r * block.ld_a + i), LoadBytes(block.b + r * block.ld_b + i))),
                 block.y + r * block.ld_y + i);
#else
  const ToBytes<true> to_bytes(s.low, s.high, s.y_zero);
  const BlockOrder order;
  HWY_ALIGN int8_t some_a[kBytes], some_b[kBytes];
  for (int64_t r = 0; r < block.rows; ++r) {
    const int8_t *a = block.a + r * block.ld_a, *b = block.b + r * block.ld_b;
    int8_t* y = block.y + r * block.ld_y;
    for (int64_t i = 0; i < block.n; i += kBytes) {
      const int64_t count = HWY_MIN(kBytes, block.n - i);
      const int8_t *p = a + i, *q = b + i;
      if (count < kBytes) {
        hn::Store(LoadSome(p, count), D8(), some_a);
        hn::Store(LoadSome(q, count), D8(), some_b);
        p = some_a;
        q = some_b;
      }
      const auto at = [&](int64_t k) HWY_ATTR { return steps(LoadBytes(p + k * kLanes), LoadBytes(q + k * kLanes)); };
      StoreSome(order.InARow(to_bytes(at(0), at(1), at(2), at(3))), y + i, count);
    }
  }
#endif
}

const QuantRows* Table() {
  static constexpr QuantRows kTable = {&ToReals, &ToIntegers, &LookUp, &Sum<true>, &Sum<false>};
#if HWY_TARGET == HWY_AVX3
  static constexpr QuantRows kVectors = {&ToReals, &ToIntegers, &LookUpVectors, &Sum<true>, &Sum<false>};
  if (has_avx512_vbmi()) return &kVectors;
#endif
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const QuantRows& quant_rows() { return *HETNN_CHOSEN(Table)(); }

namespace {

// What the meaning makes of every two bytes, the second running faster.
class AllSums {
 public:
  explicit AllSums(const ByteSum& sum) : wanted_(65536) {
    const QuantRows& rows = quant_rows();
    float reals[256], others[256];
    for (int k = 0; k < 256; ++k) all_[k] = static_cast<int8_t>(k - 128);
    rows.to_reals(all_, 256, sum.b, sum.b_zero, others);
    for (int k = 0; k < 256; ++k) {
      int8_t one[256];
      std::memset(one, all_[k], 256);
      rows.to_reals(one, 256, sum.a, sum.a_zero, reals);
      for (int i = 0; i < 256; ++i) reals[i] += others[i];
      rows.to_integers(reals, 256, sum.y, sum.y_zero, wanted_.data() + k * 256);
    }
  }
  bool are_of(const ByteSum& sum, void (*run)(const ByteSum&, const SumBlock&)) const {
    int8_t one[256], got[256];
    for (int k = 0; k < 256; ++k) {
      std::memset(one, all_[k], 256);
      run(sum, {one, all_, got, 256, 256, 256, 1, 256});
      if (std::memcmp(got, wanted_.data() + k * 256, 256) != 0) return false;
    }
    return true;
  }

 private:
  int8_t all_[256];
  std::vector<int8_t> wanted_;
};

// Compares every two bytes, up to 125 times.
void search(ByteSum& sum, const QuantRows& ways) {
  const AllSums sums(sum);
  // Quotients of the scales round; among their neighbours are some that bring each sum to the right side of its halves.
  constexpr int kNearest[] = {0, 1, -1, 2, -2};
  const auto moved = [](double value, int steps) {
    auto out = static_cast<float>(value);
    for (; steps != 0; steps += steps < 0 ? 1 : -1) out = std::nextafter(out, steps < 0 ? -HUGE_VALF : HUGE_VALF);
    return out;
  };
  for (const int of_a : kNearest) {
    for (const int of_b : kNearest) {
      for (const int of_offset : kNearest) {
        sum.factor_a = moved(double{sum.a} / sum.y, of_a);
        sum.factor_b = moved(double{sum.b} / sum.y, of_b);
        sum.offset = moved(-(double{sum.factor_a} * sum.a_zero + double{sum.factor_b} * sum.b_zero), of_offset);
        if (!sums.are_of(sum, ways.sum_quick)) continue;
        sum.run = ways.sum_quick;
        return;
      }
    }
  }
  sum.run = sums.are_of(sum, ways.sum_nearest) ? ways.sum_nearest : nullptr;
}

// The latest choices: a sum is asked about for every layer that it may follow, and again where a file is loaded.
class Choices {
 public:
  /// Whether the choice for `sum` was known, which it then is.
  bool recall(ByteSum& sum, const QuantRows& ways) {
    const std::scoped_lock lock(mutex_);
    for (const Choice& each : kept_) {
      if (each.ways != &ways || !is_of(each.sum, sum)) continue;
      sum = each.sum;
      return true;
    }
    return false;
  }
  void keep(const ByteSum& sum, const QuantRows& ways) {
    const std::scoped_lock lock(mutex_);
    if (kept_.size() < kMost) return kept_.push_back({sum, &ways});
    kept_[next_++ % kMost] = {sum, &ways};
  }

 private:
  struct Choice {
    ByteSum sum{};
    const QuantRows* ways = nullptr;
  };
  static bool is_of(const ByteSum& one, const ByteSum& other) {
    const auto asked = [](const ByteSum& s) {
      return std::tuple(s.a, s.b, s.y, s.a_zero, s.b_zero, s.y_zero, s.low, s.high);
    };
    return asked(one) == asked(other);
  }

  static constexpr size_t kMost = 64;
  std::mutex mutex_;
  std::vector<Choice> kept_;
  size_t next_ = 0;
};

}  // namespace

void ByteSum::choose() {
  static Choices choices;
  const QuantRows& ways = quant_rows();
  if (choices.recall(*this, ways)) return;
  search(*this, ways);
  choices.keep(*this, ways);
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
