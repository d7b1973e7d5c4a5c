// Vector loads of parts and the elementary functions of the kernels, compiled once per instruction set.
//
// Accuracy (float, against double): exp 1 ulp-ish (1e-7 relative), sigmoid 3e-7, tanh 2e-7, erf 4e-7 relative. NaN in,
// NaN out: Min and Max take the limit first because x86 returns the second operand when either is NaN.
#if defined(HETNN_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_VECTOR_MATH_INL_H_
#undef HETNN_KERNELS_VECTOR_MATH_INL_H_
#else
#define HETNN_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "hetnn/ops/elementwise/vocabulary.h"
#include "hwy/highway.h"

// Before a loop over few vectors, which are to stay in registers. Where a vector is one element, nothing stays anyway.
#undef HETNN_UNROLL
#if HWY_TARGET == HWY_SCALAR
#define HETNN_UNROLL _Pragma("GCC unroll 1")
#else
#define HETNN_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most 16 floats: one panel of packed weights.
using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
using DI = hn::Rebind<int32_t, DF>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(DF()));

// The first n (< kLanes) elements at p, zeros behind; touches no other memory.
HWY_INLINE VF LoadFirst(const float* p, size_t n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(DF(), n), DF(), p);
#else
  HWY_ALIGN float part[kLanes] = {};
  for (size_t i = 0; i < n; ++i) part[i] = p[i];
  return hn::Load(DF(), part);
#endif
}

HWY_INLINE void StoreFirst(VF v, float* p, size_t n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(DF(), n), DF(), p);
#else
  HWY_ALIGN float part[kLanes];
  hn::Store(v, DF(), part);
  for (size_t i = 0; i < n; ++i) p[i] = part[i];
#endif
}

HWY_INLINE VF Const(float value) { return hn::Set(DF(), value); }

// The larger (smaller) of a limit and x; x itself when it is NaN. x86 returns the second operand of its instruction
// when either is NaN, and NEON the NaN; Highway's targets without instructions take the number.
HWY_INLINE VF AtLeast(VF limit, VF x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Lt(x, limit), limit, x);
#else
  return hn::Max(limit, x);
#endif
}
HWY_INLINE VF AtMost(VF limit, VF x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Gt(x, limit), limit, x);
#else
  return hn::Min(limit, x);
#endif
}

// x / y to a unit in the last place, for y in [2^-126, 2^126] or NaN. A division of sixteen lanes takes as long as all
// the rest of an activation.
HWY_INLINE VF Quotient(VF x, VF y) {
#if HWY_TARGET == HWY_AVX3
  const VF near = hn::ApproximateReciprocal(y);  // 14 bits
  return hn::Mul(x, hn::MulAdd(near, hn::NegMulAdd(near, y, Const(1.0f)), near));
#else
  return hn::Div(x, y);
#endif
}

// e^r on the reduced argument: x = n ln 2 + r, by Cody and Waite's two-part constant and a degree-6 polynomial.
// Adding 1.5 * 2^23 rounds to the nearest integer, which then stands in the low bits of `shifted`.
HWY_INLINE VF ReducedExp(VF x, VF& shifted) {
  const VF magic = Const(12582912.0f);
  shifted = hn::MulAdd(x, Const(1.44269504089f), magic);
  const VF n = hn::Sub(shifted, magic);
  VF r = hn::NegMulAdd(n, Const(0.693359375f), x);
  r = hn::NegMulAdd(n, Const(-2.12194440e-4f), r);
  VF p = Const(1.3888889e-3f);
  p = hn::MulAdd(p, r, Const(8.3333338e-3f));
  p = hn::MulAdd(p, r, Const(4.1666668e-2f));
  p = hn::MulAdd(p, r, Const(1.6666667e-1f));
  p = hn::MulAdd(p, r, Const(0.5f));
  return hn::MulAdd(hn::Mul(p, r), r, hn::Add(r, Const(1.0f)));
}

// p times the power of two that ReducedExp leaves in `shifted`: by the instruction for it, or in two halves, so that
// results run smoothly into subnormals and infinity.
HWY_INLINE VF TimesPower(VF p, VF shifted) {
#if HWY_TARGET == HWY_AVX3
  return VF{_mm512_scalef_ps(p.raw, hn::Sub(shifted, Const(12582912.0f)).raw)};
#else
  const DF d;
  const DI di;
  const auto i = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, 0x4B400000));
  const auto half = hn::ShiftRight<1>(i);
  const auto bias = hn::Set(di, 127);
  const VF low = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const VF high = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(i, half), bias)));
  return hn::Mul(hn::Mul(p, low), high);
#endif
}

// e^x over the whole range.
HWY_INLINE VF Exp(VF x) {
  VF shifted;
  const VF p = ReducedExp(AtLeast(Const(-105.0f), AtMost(Const(89.0f), x)), shifted);
  return TimesPower(p, shifted);
}

// e^x saturated to [1.6e-38, 1.7e38], where 1 is added to it anyway: the power of two goes straight into the exponent.
HWY_INLINE VF ExpSaturated(VF x) {
  const DF d;
  const DI di;
  VF shifted;
  const VF p = ReducedExp(AtLeast(Const(-87.0f), AtMost(Const(88.0f), x)), shifted);
  const VF y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// e^x for x <= 0, exactly 0 below -87.
HWY_INLINE VF ExpNonPositive(VF x) {
#if HWY_TARGET == HWY_AVX3  // the instruction for the power zeroes lanes by itself
  VF shifted;
  const VF p = ReducedExp(x, shifted), n = hn::Sub(shifted, Const(12582912.0f));
  return VF{_mm512_maskz_scalef_ps(hn::Not(hn::Lt(x, Const(-87.0f))).raw, p.raw, n.raw)};
#else
  return hn::IfThenZeroElse(hn::Lt(x, Const(-87.0f)), ExpSaturated(x));
#endif
}

#if HWY_TARGET == HWY_AVX3
// e^x / (1 + e^x) without a division, as few steps as go: e^x as ReducedExp has it, but for one constant for ln 2,
// which is enough where a product is not rounded, and a sum that is written out.
HWY_INLINE VF Sigmoid(VF x) {
  const VF magic = Const(12582912.0f), t = AtLeast(Const(-105.0f), AtMost(Const(30.0f), x));
  const VF n = hn::Sub(hn::MulAdd(t, Const(1.44269504089f), magic), magic);
  const VF r = hn::NegMulAdd(n, Const(0.69314718056f), t);
  VF p = Const(1.3888889e-3f);
  p = hn::MulAdd(p, r, Const(8.3333338e-3f));
  p = hn::MulAdd(p, r, Const(4.1666668e-2f));
  p = hn::MulAdd(p, r, Const(1.6666667e-1f));
  p = hn::MulAdd(p, r, Const(0.5f));
  p = hn::MulAdd(hn::MulAdd(p, r, Const(1.0f)), r, Const(1.0f));
  const VF e{_mm512_scalef_ps(p.raw, n.raw)};
  return AtMost(Const(1.0f), Quotient(e, hn::Add(Const(1.0f), e)));
}
HWY_INLINE VF Silu(VF x) { return hn::Mul(x, Sigmoid(x)); }
#else
HWY_INLINE VF Sigmoid(VF x) { return hn::Div(Const(1.0f), hn::Add(Const(1.0f), ExpSaturated(hn::Neg(x)))); }
// Exp and not its saturated form, so that -inf gives -inf / inf = NaN.
HWY_INLINE VF Silu(VF x) { return hn::Div(x, hn::Add(Const(1.0f), Exp(hn::Neg(x)))); }
#endif

// x P(x^2) near zero, 1 - 2 / (e^2|x| + 1) elsewhere, where neither loses digits.
HWY_INLINE VF Tanh(VF x) {
  const VF a = hn::Abs(x);
  const VF e = ExpSaturated(hn::Add(a, a));
  const VF far = hn::Sub(Const(1.0f), Quotient(Const(2.0f), hn::Add(e, Const(1.0f))));
  const VF t = hn::Mul(x, x);
  VF p = Const(-5.70498872745e-3f);
  p = hn::MulAdd(p, t, Const(2.06390887954e-2f));
  p = hn::MulAdd(p, t, Const(-5.37397155531e-2f));
  p = hn::MulAdd(p, t, Const(1.33314422036e-1f));
  p = hn::MulAdd(p, t, Const(-3.33332819422e-1f));
  const VF near = hn::MulAdd(hn::Mul(p, t), x, x);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, Const(0.625f)), near, far), x);  // of -0 too
}

// erf as x P(x^2) / Q(x^2) on [-4, 4], fitted by reweighted least squares; beyond, it is 1 in float.
HWY_INLINE VF Erf(VF x) {
  x = AtLeast(Const(-4.0f), AtMost(Const(4.0f), x));
  const VF t = hn::Mul(x, x);
  VF p = Const(1.911090614e-08f);
  p = hn::MulAdd(p, t, Const(-1.942287356e-06f));
  p = hn::MulAdd(p, t, Const(1.472814099e-04f));
  p = hn::MulAdd(p, t, Const(3.990380352e-03f));
  p = hn::MulAdd(p, t, Const(5.152429779e-02f));
  p = hn::MulAdd(p, t, Const(2.071209175e-01f));
  p = hn::MulAdd(p, t, Const(1.128379094e+00f));
  VF q = Const(1.021064447e-03f);
  q = hn::MulAdd(q, t, Const(1.495768981e-02f));
  q = hn::MulAdd(q, t, Const(1.179689442e-01f));
  q = hn::MulAdd(q, t, Const(5.168873834e-01f));
  q = hn::MulAdd(q, t, Const(1.0f));
  const VF y = Quotient(hn::Mul(x, p), q);
  return AtLeast(Const(-1.0f), AtMost(Const(1.0f), y));
}

// e^x - 1 without cancellation: a Taylor polynomial below 0.3 in magnitude.
HWY_INLINE VF Expm1(VF x) {
  VF p = Const(1.9841270e-4f);
  p = hn::MulAdd(p, x, Const(1.3888889e-3f));
  p = hn::MulAdd(p, x, Const(8.3333333e-3f));
  p = hn::MulAdd(p, x, Const(4.1666667e-2f));
  p = hn::MulAdd(p, x, Const(1.6666667e-1f));
  p = hn::MulAdd(p, x, Const(0.5f));
  const VF near = hn::MulAdd(hn::Mul(p, x), x, x);
  const VF y = hn::IfThenElse(hn::Lt(hn::Abs(x), Const(0.3f)), near, hn::Sub(Exp(x), Const(1.0f)));
  return hn::CopySign(y, x);  // of -0 too
}

// As PReLU has it.
HWY_INLINE VF Sloped(VF x, VF slope) { return hn::IfThenElse(hn::Gt(x, hn::Zero(DF())), x, hn::Mul(x, slope)); }

// NaN in either operand gives NaN, unlike the bare instruction.
HWY_INLINE VF MaxNan(VF a, VF b) { return hn::IfThenElse(hn::IsNaN(a), a, AtLeast(a, b)); }
HWY_INLINE VF MinNan(VF a, VF b) { return hn::IfThenElse(hn::IsNaN(a), a, AtMost(a, b)); }

// What has no vector form, by the C library.
template <typename F>
HWY_INLINE VF EachLane(F f, VF x) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(x, DF(), lanes);
  for (float& lane : lanes) lane = f(lane);
  return hn::Load(DF(), lanes);
}
template <typename F>
HWY_INLINE VF EachLane(F f, VF x, VF y) {
  HWY_ALIGN float left[kLanes], right[kLanes];
  hn::Store(x, DF(), left);
  hn::Store(y, DF(), right);
  for (int i = 0; i < kLanes; ++i) left[i] = f(left[i], right[i]);
  return hn::Load(DF(), left);
}
HWY_INLINE VF RoundDown(VF x) {
  return EachLane([](float v) HWY_ATTR { return std::floor(v); }, x);
}
HWY_INLINE VF RoundUp(VF x) {
  return EachLane([](float v) HWY_ATTR { return std::ceil(v); }, x);
}
HWY_INLINE VF RoundToEven(VF x) {
  return EachLane([](float v) HWY_ATTR { return std::nearbyint(v); }, x);
}
HWY_INLINE VF RoundToZero(VF x) {
  return EachLane([](float v) HWY_ATTR { return std::trunc(v); }, x);
}
HWY_INLINE VF FloorDivide(VF x, VF y) {
  return EachLane([](float a, float b) HWY_ATTR { return ops::vocabulary::FloorDivide(a, b); }, x, y);
}

// What formulas and series call as Highway does.
namespace arithmetic {
using hn::Abs;
using hn::Add;
using hn::Div;
using hn::Ge;
using hn::Gt;
using hn::Mul;
using hn::MulAdd;
using hn::Neg;
using hn::Sqrt;
using hn::Sub;
template <typename M, typename V>
HWY_INLINE V Select(M first, V x, V y) {
  return hn::IfThenElse(first, x, y);
}
}  // namespace arithmetic

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_VECTOR_MATH_INL_H_
