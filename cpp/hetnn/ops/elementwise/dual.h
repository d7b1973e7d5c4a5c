// Values with their slopes: over them a formula gives its forward derivative as well.
#pragma once

#include <numbers>

#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::ops {

/// V and its derivative by whatever the operands' slopes are derivatives by.
template <typename V>
struct Dual {
  V value, slope;
  static Dual constant(double number) { return {formula::Of<V>::Const(number), formula::Of<V>::Const(0)}; }
};

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
namespace dual {
using namespace vocabulary;  // NOLINT(google-build-using-namespace): slopes are written in it

template <typename V>
V number(double value) {
  return formula::Of<V>::Const(value);
}
template <typename V>
V square(const V& x) {
  return Mul(x, x);
}
template <typename V>
V side(const V& x) {
  return Select(Gt(x, number<V>(0)), number<V>(1), Select(Gt(number<V>(0), x), number<V>(-1), number<V>(0)));
}
template <typename V>
V but_at_zero(const V& x, double there, const V& elsewhere) {
  return Select(Gt(Abs(x), number<V>(0)), elsewhere, number<V>(there));
}
// The density of a gamma distribution of shape a.
template <typename V>
V gamma_density(const V& a, const V& x) {
  return Exp(Sub(Sub(Mul(Sub(a, number<V>(1)), Log(x)), x), Lgamma(a)));
}
// The chain rule: of x's word with the derivative `by` at x.
template <typename V>
Dual<V> chained(const Dual<V>& x, const V& value, const V& by) {
  return {value, Mul(x.slope, by)};
}
template <typename V>
Dual<V> flat(const V& value) {
  return {value, number<V>(0)};
}
}  // namespace dual

#define HETNN_SLOPE(word, ...)            \
  template <typename V>                   \
  Dual<V> word(const Dual<V>& u) {        \
    using namespace dual;                 \
    const V& x = u.value;                 \
    const V y = word(x);                  \
    return chained(u, y, V(__VA_ARGS__)); \
  }
HETNN_SLOPE(Neg, number<V>(-1))
HETNN_SLOPE(Abs, side(x))
HETNN_SLOPE(Sqrt, Div(number<V>(0.5), y))
HETNN_SLOPE(Exp, y)
HETNN_SLOPE(Exp2, Mul(y, number<V>(std::numbers::ln2)))
HETNN_SLOPE(Expm1, Add(y, number<V>(1)))
HETNN_SLOPE(Log, Div(number<V>(1), x))
HETNN_SLOPE(Log2, Div(number<V>(1 / std::numbers::ln2), x))
HETNN_SLOPE(Log10, Div(number<V>(1 / std::numbers::ln10), x))
HETNN_SLOPE(Log1p, Div(number<V>(1), Add(x, number<V>(1))))
HETNN_SLOPE(Sigmoid, Mul(y, Sub(number<V>(1), y)))
HETNN_SLOPE(Silu, Mul(Sigmoid(x), Add(number<V>(1), Sub(x, y))))
HETNN_SLOPE(Tanh, Sub(number<V>(1), square(y)))
HETNN_SLOPE(Erf, Mul(number<V>(2 * std::numbers::inv_sqrtpi), Exp(Neg(square(x)))))
HETNN_SLOPE(Erfc, Mul(number<V>(-2 * std::numbers::inv_sqrtpi), Exp(Neg(square(x)))))
HETNN_SLOPE(Sin, Cos(x))
HETNN_SLOPE(Cos, Neg(Sin(x)))
HETNN_SLOPE(Tan, Add(square(y), number<V>(1)))
HETNN_SLOPE(Asin, Div(number<V>(1), Sqrt(Sub(number<V>(1), square(x)))))
HETNN_SLOPE(Acos, Div(number<V>(-1), Sqrt(Sub(number<V>(1), square(x)))))
HETNN_SLOPE(Atan, Div(number<V>(1), Add(square(x), number<V>(1))))
HETNN_SLOPE(Sinh, Cosh(x))
HETNN_SLOPE(Cosh, Sinh(x))
HETNN_SLOPE(Asinh, Div(number<V>(1), Sqrt(Add(square(x), number<V>(1)))))
HETNN_SLOPE(Acosh, Div(number<V>(1), Sqrt(Sub(square(x), number<V>(1)))))
HETNN_SLOPE(Atanh, Div(number<V>(1), Sub(number<V>(1), square(x))))
HETNN_SLOPE(RoundDown, number<V>(0))
HETNN_SLOPE(RoundUp, number<V>(0))
HETNN_SLOPE(RoundToZero, number<V>(0))
HETNN_SLOPE(RoundToEven, number<V>(0))
HETNN_SLOPE(Lgamma, Digamma(x))
HETNN_SLOPE(Digamma, Polygamma(number<V>(1), x))
HETNN_SLOPE(Erfinv, Mul(number<V>(0.5 / std::numbers::inv_sqrtpi), Exp(square(y))))
HETNN_SLOPE(Erfcx, Sub(Mul(number<V>(2), Mul(x, y)), number<V>(2 * std::numbers::inv_sqrtpi)))
HETNN_SLOPE(Ndtri, Mul(number<V>(std::numbers::sqrt2 / std::numbers::inv_sqrtpi), Exp(Mul(number<V>(0.5), square(y)))))
HETNN_SLOPE(AiryAi, Unknown(number<V>(1)))
HETNN_SLOPE(BesselJ0, Neg(BesselJ1(x)))
HETNN_SLOPE(BesselJ1, but_at_zero(x, 0.5, Sub(BesselJ0(x), Div(y, x))))
HETNN_SLOPE(BesselY0, Neg(BesselY1(x)))
HETNN_SLOPE(BesselY1, Sub(BesselY0(x), Div(y, x)))
HETNN_SLOPE(I0, I1(x))
HETNN_SLOPE(I1, but_at_zero(x, 0.5, Sub(I0(x), Div(y, x))))
HETNN_SLOPE(I0e, Sub(I1e(x), Mul(y, side(x))))
HETNN_SLOPE(I1e, but_at_zero(x, 0.5, Sub(I0e(x), Mul(y, Add(side(x), Div(number<V>(1), x))))))
HETNN_SLOPE(K0, Neg(K1(x)))
HETNN_SLOPE(K1, Sub(Neg(K0(x)), Div(y, x)))
HETNN_SLOPE(K0e, Sub(y, K1e(x)))
HETNN_SLOPE(K1e, Sub(Sub(y, Div(y, x)), K0e(x)))
HETNN_SLOPE(SphericalJ0, but_at_zero(x, 0, Div(Sub(Cos(x), y), x)))
#undef HETNN_SLOPE

#define HETNN_SLOPES(word, ...)                            \
  template <typename V>                                    \
  Dual<V> word(const Dual<V>& u, const Dual<V>& v) {       \
    using namespace dual;                                  \
    const V &x = u.value, &y = v.value;                    \
    [[maybe_unused]] const V &dx = u.slope, &dy = v.slope; \
    const V z = word(x, y);                                \
    return {z, V(__VA_ARGS__)};                            \
  }
HETNN_SLOPES(Add, Add(dx, dy))
HETNN_SLOPES(Sub, Sub(dx, dy))
HETNN_SLOPES(Mul, Add(Mul(dx, y), Mul(x, dy)))
HETNN_SLOPES(Div, Div(Sub(dx, Mul(z, dy)), y))
HETNN_SLOPES(Quotient, Div(Sub(dx, Mul(z, dy)), y))
// At its limit it does not move, as torch has it.
HETNN_SLOPES(AtLeast, Select(Gt(y, x), dy, dx))
HETNN_SLOPES(AtMost, Select(Gt(x, y), dy, dx))
// Of equal ones half of each.
HETNN_SLOPES(MaxNan, Select(Gt(x, y), dx, Select(Gt(y, x), dy, Mul(number<V>(0.5), Add(dx, dy)))))
HETNN_SLOPES(MinNan, Select(Gt(y, x), dx, Select(Gt(x, y), dy, Mul(number<V>(0.5), Add(dx, dy)))))
HETNN_SLOPES(Atan2, Div(Sub(Mul(y, dx), Mul(x, dy)), Add(square(x), square(y))))
HETNN_SLOPES(Fmod, Sub(dx, Mul(dy, RoundToZero(Div(x, y)))))
HETNN_SLOPES(Remainder, Sub(dx, Mul(dy, RoundDown(Div(x, y)))))
HETNN_SLOPES(FloorDivide, number<V>(0))
// A power 0 does not grow with x, and a power of 0 not with y.
HETNN_SLOPES(Pow, Add(Mul(dx, Select(Gt(Abs(y), number<V>(0)), Mul(y, Pow(x, Sub(y, number<V>(1)))), number<V>(0))),
                      Mul(dy, Select(Gt(Abs(x), number<V>(0)), Mul(z, Log(x)), number<V>(0)))))
HETNN_SLOPES(Zeta, Add(Unknown(dx), Neg(Mul(dy, Mul(x, Zeta(Add(x, number<V>(1)), y))))))
HETNN_SLOPES(Igamma, Add(Unknown(dx), Mul(dy, gamma_density(x, y))))
HETNN_SLOPES(Igammac, Sub(Unknown(dx), Mul(dy, gamma_density(x, y))))
HETNN_SLOPES(Polygamma, Add(Unknown(dx), Mul(dy, Polygamma(Add(x, number<V>(1)), y))))
// Degrees are whole.
HETNN_SLOPES(ChebyshevT, Mul(dx, Mul(RoundToZero(y), ChebyshevU(x, Sub(y, number<V>(1))))))
HETNN_SLOPES(ChebyshevU, Unknown(dx))
HETNN_SLOPES(ChebyshevV, Unknown(dx))
HETNN_SLOPES(ChebyshevW, Unknown(dx))
HETNN_SLOPES(ShiftedChebyshevT,
             Mul(dx, Mul(Mul(number<V>(2), RoundToZero(y)), ShiftedChebyshevU(x, Sub(y, number<V>(1))))))
HETNN_SLOPES(ShiftedChebyshevU, Unknown(dx))
HETNN_SLOPES(ShiftedChebyshevV, Unknown(dx))
HETNN_SLOPES(ShiftedChebyshevW, Unknown(dx))
HETNN_SLOPES(HermiteH, Mul(dx, Mul(Mul(number<V>(2), RoundToZero(y)), HermiteH(x, Sub(y, number<V>(1))))))
HETNN_SLOPES(HermiteHe, Mul(dx, Mul(RoundToZero(y), HermiteHe(x, Sub(y, number<V>(1))))))
HETNN_SLOPES(LaguerreL, Unknown(dx))
HETNN_SLOPES(LegendreP, Unknown(dx))
#undef HETNN_SLOPES

template <typename V>
Dual<V> MulAdd(const Dual<V>& x, const Dual<V>& y, const Dual<V>& z) {
  using namespace dual;
  return {MulAdd(x.value, y.value, z.value), Add(Add(Mul(x.slope, y.value), Mul(x.value, y.slope)), z.slope)};
}
template <typename V>
auto Gt(const Dual<V>& x, const Dual<V>& y) {
  using namespace dual;
  return Gt(x.value, y.value);
}
template <typename V>
auto Ge(const Dual<V>& x, const Dual<V>& y) {
  using namespace dual;
  return Ge(x.value, y.value);
}
template <typename V>
Dual<V> Select(bool condition, const Dual<V>& x, const Dual<V>& y) {
  return condition ? x : y;
}
template <typename C, typename V>
Dual<V> Select(const C& condition, const Dual<V>& x, const Dual<V>& y) {
  using namespace dual;
  return {Select(condition, x.value, y.value), Select(condition, x.slope, y.slope)};
}
// NOLINTEND(readability-identifier-naming)

}  // namespace hetnn::ops
