// Elementary functions of f32 lanes that are computed in double and rounded once, compiled once per instruction set.
//
// Errors in double are below 1e-9 relative, so that results are the nearest float or, rarely, its neighbour: what is
// exact (log10 of 1000, 3 to the 2) is. Arguments for which that does not hold go to the C library, all lanes of the
// vector together. Instruction sets whose vectors hold no doubles use the C library throughout.
#if defined(HETNN_KERNELS_VECTOR_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_VECTOR_FUNCTIONS_INL_H_
#undef HETNN_KERNELS_VECTOR_FUNCTIONS_INL_H_
#else
#define HETNN_KERNELS_VECTOR_FUNCTIONS_INL_H_
#endif

#include <cmath>
#include <limits>

#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

#undef HETNN_LANES_BY_LIBRARY
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define HETNN_LANES_BY_LIBRARY 1
#else
#define HETNN_LANES_BY_LIBRARY 0

// Half as many doubles.
using DD = hn::RepartitionToWide<DF>;
using VD = hn::Vec<DD>;
using DL = hn::RebindToSigned<DD>;

HWY_INLINE VD Wide(double value) { return hn::Set(DD(), value); }

HWY_INLINE VD LowDoubles(VF x) { return hn::PromoteTo(DD(), hn::LowerHalf(hn::Half<DF>(), x)); }
HWY_INLINE VD HighDoubles(VF x) { return hn::PromoteTo(DD(), hn::UpperHalf(hn::Half<DF>(), x)); }

// f of both halves, rounded.
template <typename F>
HWY_INLINE VF InDoubles(const F& f, VF x) {
  const hn::Half<DF> half;
  const VD low = f(LowDoubles(x)), high = f(HighDoubles(x));
  return hn::Combine(DF(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}
template <typename F>
HWY_INLINE VF InDoubles(const F& f, VF x, VF y) {
  const hn::Half<DF> half;
  const VD low = f(LowDoubles(x), LowDoubles(y)), high = f(HighDoubles(x), HighDoubles(y));
  return hn::Combine(DF(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// c[0] + c[1] x + ...
template <size_t kCount>
HWY_INLINE VD Polynomial(VD x, const double (&c)[kCount]) {
  VD p = Wide(c[kCount - 1]);
#pragma GCC unroll 16
  for (size_t k = kCount - 1; k-- > 0;) p = hn::MulAdd(p, x, Wide(c[k]));
  return p;
}

// 2 to the n, a whole number in [-1022, 1023].
HWY_INLINE VD PowerOfTwo(VD n) {
  // Adding 1.5 * 2^52 leaves n in the low bits.
  const auto bits = hn::BitCast(DL(), hn::Add(n, Wide(6755399441055744.0)));
  return hn::BitCast(DD(), hn::ShiftLeft<52>(hn::Add(bits, hn::Set(DL(), 1023))));
}

// x = 2^e m with m in [sqrt 1/2, sqrt 2), of normal x > 0.
HWY_INLINE VD Split(VD x, VD& m) {
  const auto bits = hn::BitCast(DL(), x);
  const auto e =
      hn::Sub(hn::ShiftRight<52>(hn::BitCast(hn::RebindToUnsigned<DD>(),
                                             hn::Sub(bits, hn::Set(DL(), 0x3FE6A09E667F3BCD - (1023LL << 52))))),
              hn::Set(hn::RebindToUnsigned<DD>(), 1023));
  const auto whole = hn::BitCast(DL(), e);
  m = hn::BitCast(DD(), hn::Sub(bits, hn::ShiftLeft<52>(whole)));
  // Small whole numbers by the bits of 1.5 * 2^52 + e.
  const VD magic = Wide(6755399441055744.0);
  return hn::Sub(hn::BitCast(DD(), hn::Add(hn::BitCast(DL(), magic), whole)), magic);
}

// log(1 + f) for f in [sqrt 1/2 - 1, sqrt 2 - 1], as 2 atanh(f / (f + 2)).
HWY_INLINE VD LogNearOne(VD f) {
  const VD s = hn::Div(f, hn::Add(f, Wide(2)));
  const VD z = hn::Mul(s, s);
  constexpr double kSeries[] = {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17};
  return hn::Mul(s, Polynomial(z, kSeries));
}

constexpr double kLn2 = 0.69314718055994530942;

// -inf of 0, NaN below it, inf of inf.
HWY_INLINE VD LogEnds(VD x, VD y) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  y = hn::IfThenElse(hn::Eq(x, Wide(0)), Wide(-kInf), y);
  y = hn::IfThenElse(hn::Lt(x, Wide(0)), Wide(std::numeric_limits<double>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, Wide(kInf))), x, y);
}

// log x * scale + e * of_two, where log(2) * scale = of_two.
HWY_INLINE VD ScaledLog(VD x, double scale, double of_two) {
  VD m;
  const VD e = Split(x, m);
  return LogEnds(x, hn::MulAdd(e, Wide(of_two), hn::Mul(LogNearOne(hn::Sub(m, Wide(1))), Wide(scale))));
}

HWY_INLINE VD Log1pOf(VD x) {
  const VD u = hn::Add(x, Wide(1));
  VD m;
  const VD e = Split(u, m);
  // Small x is its own distance from 1, without the rounding of u.
  const VD f = hn::IfThenElse(hn::Eq(e, Wide(0)), x, hn::Sub(m, Wide(1)));
  const VD y = LogEnds(u, hn::MulAdd(e, Wide(kLn2), LogNearOne(f)));
  return hn::IfThenElse(hn::Eq(x, Wide(0)), x, y);  // -0 too
}

// e^r for |r| <= ln 2 / 2.
HWY_INLINE VD ExpNearZero(VD r) {
  constexpr double kSeries[] = {1,         1,          1.0 / 2,     1.0 / 6,      1.0 / 24,     1.0 / 120,
                                1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800};
  return Polynomial(r, kSeries);
}

HWY_INLINE VD Exp2Of(VD x) {
  x = hn::IfThenElse(hn::IsNaN(x), x, hn::Max(Wide(-1000), hn::Min(Wide(1000), x)));
  const VD n = hn::Round(x);
  return hn::Mul(ExpNearZero(hn::Mul(hn::Sub(x, n), Wide(kLn2))), PowerOfTwo(n));
}

HWY_INLINE VD ExpOf(VD x) {
  x = hn::IfThenElse(hn::IsNaN(x), x, hn::Max(Wide(-700), hn::Min(Wide(700), x)));
  const VD n = hn::Round(hn::Mul(x, Wide(1 / kLn2)));
  const VD r = hn::NegMulAdd(n, Wide(1.9082149292705877e-10), hn::NegMulAdd(n, Wide(0.69314718036912381649), x));
  return hn::Mul(ExpNearZero(r), PowerOfTwo(n));
}

// atan, by a share of the circle and the tangent of what is left, which is at most tan(pi / 8).
HWY_INLINE VD AtanOf(VD x) {
  const VD a = hn::Abs(x);
  const auto far = hn::Gt(a, Wide(2.4142135623730950488)), middle = hn::Gt(a, Wide(0.41421356237309504880));
  const VD above = hn::IfThenElse(far, Wide(-1), hn::IfThenElse(middle, hn::Sub(a, Wide(1)), a));
  const VD below = hn::IfThenElse(far, a, hn::IfThenElse(middle, hn::Add(a, Wide(1)), Wide(1)));
  const VD base = hn::IfThenElse(far, Wide(M_PI_2), hn::IfThenElse(middle, Wide(M_PI_4), Wide(0)));
  const VD inf = Wide(std::numeric_limits<double>::infinity());
  const VD t = hn::Div(above, below), z = hn::Mul(t, t);
  constexpr double kSeries[] = {1,        -1.0 / 3,  1.0 / 5,  -1.0 / 7,  1.0 / 9,  -1.0 / 11,
                                1.0 / 13, -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21, -1.0 / 23};
  const VD y = hn::MulAdd(t, Polynomial(z, kSeries), base);
  return hn::CopySign(hn::IfThenElse(hn::Eq(a, inf), Wide(M_PI_2), y), x);
}

// What of pi / 2 is left of x, for |x| <= kMostTurned; n says how often it was taken.
constexpr float kMostTurned = 1e6f;
HWY_INLINE VD TurnedBack(VD x, VD& n) {
  n = hn::Round(hn::Mul(x, Wide(M_2_PI)));
  return hn::NegMulAdd(n, Wide(6.077100506506192e-11), hn::NegMulAdd(n, Wide(1.5707963267341256), x));
}
HWY_INLINE VD SinNearZero(VD r) {
  constexpr double kSeries[] = {1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800};
  return hn::Mul(r, Polynomial(hn::Mul(r, r), kSeries));
}
HWY_INLINE VD CosNearZero(VD r) {
  constexpr double kSeries[] = {1, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600};
  return Polynomial(hn::Mul(r, r), kSeries);
}
HWY_INLINE auto IsOdd(VD n) { return hn::Ne(hn::Mul(hn::Floor(hn::Mul(n, Wide(0.5))), Wide(2)), n); }

// The sine of x and `quarters` more quarters of the circle.
HWY_INLINE VD SinOf(VD x, double quarters) {
  VD n;
  const VD r = TurnedBack(x, n);
  n = hn::Add(n, Wide(quarters));
  const VD y = hn::IfThenElse(IsOdd(n), CosNearZero(r), SinNearZero(r));
  const VD turned = hn::IfThenElse(IsOdd(hn::Floor(hn::Mul(n, Wide(0.5)))), hn::Neg(y), y);
  return quarters == 0 ? hn::IfThenElse(hn::Eq(x, Wide(0)), x, turned) : turned;  // -0 too
}
HWY_INLINE VD TanOf(VD x) {
  VD n;
  const VD r = TurnedBack(x, n);
  const VD sine = SinNearZero(r), cosine = CosNearZero(r);
  const auto odd = IsOdd(n);
  const VD y = hn::Div(hn::IfThenElse(odd, hn::Neg(cosine), sine), hn::IfThenElse(odd, sine, cosine));
  return hn::IfThenElse(hn::Eq(x, Wide(0)), x, y);  // -0 too
}

HWY_INLINE bool AllBelow(VF x, float most) { return hn::AllTrue(DF(), hn::Le(hn::Abs(x), Const(most))); }
// Lanes that are numbers other than 0 are.
HWY_INLINE bool AllOrdinary(VF x) {
  constexpr float kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  const VF a = hn::Abs(x);
  return hn::AllTrue(DF(), hn::And(hn::Ge(a, Const(kLeast)), hn::Le(a, Const(kMost))));
}
#endif  // HETNN_LANES_BY_LIBRARY

#undef HETNN_IN_DOUBLES
#if HETNN_LANES_BY_LIBRARY
#define HETNN_IN_DOUBLES(Name, library, ...)                                                          \
  HWY_INLINE VF Name(VF x) {                                                                          \
    return EachLane([](float v) HWY_ATTR { return static_cast<float>(std::library(double{v})); }, x); \
  }
#else
#define HETNN_IN_DOUBLES(Name, library, ...)                \
  inline HWY_NOINLINE VF Name(VF v) {                       \
    return InDoubles([](VD x) HWY_ATTR { __VA_ARGS__ }, v); \
  }
#endif
HETNN_IN_DOUBLES(Log, log, return ScaledLog(x, 1, kLn2);)
HETNN_IN_DOUBLES(Log2, log2, return ScaledLog(x, 1 / kLn2, 1);)
HETNN_IN_DOUBLES(Log10, log10, return ScaledLog(x, 0.43429448190325182765, 0.30102999566398119521);)
HETNN_IN_DOUBLES(Log1p, log1p, return Log1pOf(x);)
HETNN_IN_DOUBLES(Exp2, exp2, return Exp2Of(x);)
HETNN_IN_DOUBLES(Atan, atan, return AtanOf(x);)
HETNN_IN_DOUBLES(Asin, asin,
                 { return AtanOf(hn::Div(x, hn::Sqrt(hn::Mul(hn::Sub(Wide(1), x), hn::Add(Wide(1), x))))); })
HETNN_IN_DOUBLES(Acos, acos, {
  const VD half = AtanOf(hn::Sqrt(hn::Div(hn::Sub(Wide(1), x), hn::Add(Wide(1), x))));
  return hn::Add(half, half);
})
HETNN_IN_DOUBLES(Sinh, sinh, {
  const VD e = ExpOf(x), z = hn::Mul(x, x);
  constexpr double kSeries[] = {1, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880};
  const VD near = hn::Mul(x, Polynomial(z, kSeries)), far = hn::Mul(hn::Sub(e, hn::Div(Wide(1), e)), Wide(0.5));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), Wide(0.5)), near, far);
})
HETNN_IN_DOUBLES(Cosh, cosh, {
  const VD e = ExpOf(x);
  return hn::Mul(hn::Add(e, hn::Div(Wide(1), e)), Wide(0.5));
})
HETNN_IN_DOUBLES(Asinh, asinh, {
  const VD a = hn::Abs(x), z = hn::Mul(x, x);
  const VD more = hn::Div(z, hn::Add(Wide(1), hn::Sqrt(hn::Add(z, Wide(1)))));
  // Of infinity that is NaN.
  const VD y = hn::IfThenElse(hn::Gt(a, Wide(1e100)), a, Log1pOf(hn::Add(a, more)));
  return hn::CopySign(y, x);
})
HETNN_IN_DOUBLES(Acosh, acosh, {
  const VD t = hn::Sub(x, Wide(1));
  const VD y = Log1pOf(hn::Add(t, hn::Sqrt(hn::Mul(t, hn::Add(t, Wide(2))))));
  return hn::IfThenElse(hn::Lt(t, Wide(0)), Wide(std::numeric_limits<double>::quiet_NaN()), y);
})
HETNN_IN_DOUBLES(Atanh, atanh, { return hn::Mul(Log1pOf(hn::Div(hn::Add(x, x), hn::Sub(Wide(1), x))), Wide(0.5)); })
// e^(-x^2 + P(t)) t with t = 1 / (1 + x / 2), P fitted to 2e-10 on [0, 10.2], behind which it is 0 in float.
HETNN_IN_DOUBLES(Erfc, erfc, {
  const VD a = hn::Min(hn::Abs(x), Wide(12)), t = hn::Div(Wide(1), hn::MulAdd(a, Wide(0.5), Wide(1)));
  constexpr double kFit[] = {-1.2655050485864088, 0.9997507743134257,  0.3789160354108455, 0.04704789120563266,
                             0.13479224173083829, -1.0713895716347466, 2.6622450814967635, -5.753727475492868,
                             8.541452004965977,   -7.885625619110044,  4.401281956421036,  -1.3754868358981518,
                             0.18624856535318332};
  const VD y = hn::Mul(t, ExpOf(hn::NegMulAdd(a, a, Polynomial(t, kFit))));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Lt(x, Wide(0)), hn::Sub(Wide(2), y), y));
})
#undef HETNN_IN_DOUBLES

#undef HETNN_TURNING
#if HETNN_LANES_BY_LIBRARY
#define HETNN_TURNING(Name, library, ...)                                                             \
  HWY_INLINE VF Name(VF x) {                                                                          \
    return EachLane([](float v) HWY_ATTR { return static_cast<float>(std::library(double{v})); }, x); \
  }
#else
#define HETNN_TURNING(Name, library, ...)                                                                     \
  inline HWY_NOINLINE VF Name(VF v) {                                                                         \
    if (!AllBelow(v, kMostTurned))                                                                            \
      return EachLane([](float each) HWY_ATTR { return static_cast<float>(std::library(double{each})); }, v); \
    return InDoubles([](VD x) HWY_ATTR { return __VA_ARGS__; }, v);                                           \
  }
#endif
HETNN_TURNING(Sin, sin, SinOf(x, 0))
HETNN_TURNING(Cos, cos, SinOf(x, 1))
HETNN_TURNING(Tan, tan, TanOf(x))
#undef HETNN_TURNING

inline HWY_NOINLINE VF Atan2(VF y, VF x) {
#if !HETNN_LANES_BY_LIBRARY
  if (AllOrdinary(x) && AllOrdinary(y)) {
    return InDoubles(
        [](VD a, VD b) HWY_ATTR {
          const VD angle = AtanOf(hn::Div(hn::Abs(a), hn::Abs(b)));
          return hn::CopySign(hn::IfThenElse(hn::Lt(b, Wide(0)), hn::Sub(Wide(M_PI), angle), angle), a);
        },
        y, x);
  }
#endif
  return EachLane([](float a, float b) HWY_ATTR { return static_cast<float>(std::atan2(double{a}, double{b})); }, y, x);
}

inline HWY_NOINLINE VF Pow(VF x, VF y) {
#if !HETNN_LANES_BY_LIBRARY
  constexpr float kMostPower = 1 << 22;  // below, it is known whether a power is odd
  if (AllOrdinary(x) && AllBelow(y, kMostPower)) {
    return InDoubles(
        [](VD base, VD power) HWY_ATTR {
          VD m;
          const VD e = Split(hn::Abs(base), m);
          const VD log2 = hn::MulAdd(LogNearOne(hn::Sub(m, Wide(1))), Wide(1 / kLn2), e);
          const VD size = Exp2Of(hn::Mul(power, log2));
          const VD nan = Wide(std::numeric_limits<double>::quiet_NaN());
          const VD signed_size = hn::IfThenElse(IsOdd(power), hn::Neg(size), size);
          const VD below = hn::IfThenElse(hn::Eq(hn::Floor(power), power), signed_size, nan);
          return hn::IfThenElse(hn::Lt(base, Wide(0)), below, size);
        },
        x, y);
  }
#endif
  return EachLane([](float a, float b) HWY_ATTR { return static_cast<float>(std::pow(double{a}, double{b})); }, x, y);
}

// What is left of x is exact where the whole quotient is.
#if !HETNN_LANES_BY_LIBRARY
HWY_INLINE bool DividesExactly(VF x, VF y) {
  constexpr float kMostQuotient = 1 << 26;
  return AllOrdinary(y) && AllBelow(x, std::numeric_limits<float>::max()) &&
         hn::AllTrue(DF(), hn::Le(hn::Abs(hn::Div(x, y)), Const(kMostQuotient)));
}
HWY_INLINE VF LeftOver(VF x, VF y) {
  const VF left = InDoubles([](VD a, VD b) HWY_ATTR { return hn::NegMulAdd(hn::Trunc(hn::Div(a, b)), b, a); }, x, y);
  return hn::CopySign(left, x);  // of 0 too
}
// Where that has not the sign of y.
HWY_INLINE auto LeansAway(VF left, VF y) {
  return hn::And(hn::Ne(left, Const(0)),
                 hn::Lt(hn::Mul(hn::CopySign(Const(1), left), hn::CopySign(Const(1), y)), Const(0)));
}
#endif

inline HWY_NOINLINE VF Fmod(VF x, VF y) {
#if !HETNN_LANES_BY_LIBRARY
  if (DividesExactly(x, y)) return LeftOver(x, y);
#endif
  return EachLane([](float a, float b) HWY_ATTR { return std::fmod(a, b); }, x, y);
}

inline HWY_NOINLINE VF Remainder(VF x, VF y) {
#if !HETNN_LANES_BY_LIBRARY
  if (DividesExactly(x, y)) {
    const VF left = LeftOver(x, y);
    return hn::IfThenElse(LeansAway(left, y), hn::Add(left, y), left);
  }
#endif
  return EachLane([](float a, float b) HWY_ATTR { return ops::vocabulary::Remainder(a, b); }, x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_VECTOR_FUNCTIONS_INL_H_
