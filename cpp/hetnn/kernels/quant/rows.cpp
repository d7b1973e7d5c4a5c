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
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
