// Conversions of rows for each instruction set.
#include "hetnn/kernels/quant/rows.h"

#include <cstring>

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

void Sum(const int8_t* a, const int8_t* b, int64_t n, const SumScales& s, int8_t* y) {
  const DI d;
  const VF scale_a = Const(s.a), scale_b = Const(s.b), scale = Const(s.y), inverse = Const(1 / s.y);
  const VI zero_a = hn::Set(d, s.a_zero), zero_b = hn::Set(d, s.b_zero);
  // A quotient by its inverse, and by what is left once more: the nearest (Markstein).
  const auto steps = [&](VI p, VI q) HWY_ATTR {
    const VF real = hn::Add(hn::Mul(scale_a, hn::ConvertTo(DF(), hn::Sub(p, zero_a))),
                            hn::Mul(scale_b, hn::ConvertTo(DF(), hn::Sub(q, zero_b))));
    const VF near = hn::Mul(real, inverse);
    return hn::MulAdd(hn::NegMulAdd(near, scale, real), inverse, near);
  };
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const ToBytes<true> to_bytes(-128, 127, s.y_zero);
  const BlockOrder order;
  const auto at = [&](int64_t k) HWY_ATTR { return steps(LoadBytes(a + k), LoadBytes(b + k)); };
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    hn::StoreU(order.InARow(to_bytes(at(i), at(i + kLanes), at(i + 2 * kLanes), at(i + 3 * kLanes))), D8(), y + i);
  }
#endif
  const ToByte to_byte(-128, 127, s.y_zero);
  for (; i < n; i += kLanes) {
    const int64_t some = HWY_MIN(kLanes, n - i);
    StoreBytes(to_byte(steps(LoadBytes(a + i, some), LoadBytes(b + i, some))), y + i, some);
  }
}
SumRows SumOf() { return &Sum; }

const QuantRows* Table() {
  static constexpr QuantRows kTable = {&ToReals, &ToIntegers};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const QuantRows& quant_rows() { return *HETNN_CHOSEN(Table)(); }

SumRows sum_rows(const SumScales& scales) {
  const SumRows sum = HETNN_CHOSEN(SumOf)();
  const QuantRows& rows = quant_rows();
  int8_t all[256], one[256], got[256], want[256];
  float reals[256], others[256];
  for (int k = 0; k < 256; ++k) all[k] = static_cast<int8_t>(k - 128);
  rows.to_reals(all, 256, scales.b, scales.b_zero, others);
  for (int k = 0; k < 256; ++k) {
    std::memset(one, all[k], 256);
    rows.to_reals(one, 256, scales.a, scales.a_zero, reals);
    for (int i = 0; i < 256; ++i) reals[i] += others[i];
    rows.to_integers(reals, 256, scales.y, scales.y_zero, want);
    sum(one, all, 256, scales, got);
    if (std::memcmp(got, want, 256) != 0) return nullptr;
  }
  return sum;
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
