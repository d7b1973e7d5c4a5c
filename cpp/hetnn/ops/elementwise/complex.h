// Complex values: over them a formula gives what it is of complex numbers, part by part.
//
// W. Kahan, "Branch cuts for complex elementary functions", 1987, for the inverse ones: signs of zeros choose the side.
#pragma once

#include <limits>
#include <numbers>

#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::ops {

/// Real and imaginary part. Beside the vocabulary of formulas, V has Eq, And and Or; a V that is none (V()) stands for
/// what complex numbers do not have: an order, and what follows from it.
template <typename V>
struct Complex {
  V re, im;
  static Complex constant(double number) { return {formula::Of<V>::Const(number), formula::Of<V>::Const(0)}; }
};

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
namespace complex {

using namespace vocabulary;  // NOLINT(google-build-using-namespace): parts are written in it

template <typename V>
V number(double value) {
  return formula::Of<V>::Const(value);
}
template <typename V>
V is_zero(const V& x) {
  return Eq(x, number<V>(0));
}
template <typename V>
V is_infinite(const V& x) {
  return Eq(Abs(x), number<V>(std::numeric_limits<double>::infinity()));
}
template <typename C, typename V>
Complex<V> choose(const C& condition, const Complex<V>& a, const Complex<V>& b) {
  return {Select(condition, a.re, b.re), Select(condition, a.im, b.im)};
}
template <typename V>
Complex<V> scaled(const Complex<V>& z, double factor) {
  return {Mul(z.re, number<V>(factor)), Mul(z.im, number<V>(factor))};
}
template <typename V>
Complex<V> shifted(const Complex<V>& z, double real) {
  return {Add(z.re, number<V>(real)), z.im};
}
template <typename V>
Complex<V> conjugate(const Complex<V>& z) {
  return {z.re, Neg(z.im)};
}
// i z and -i z.
template <typename V>
Complex<V> turned(const Complex<V>& z) {
  return {Neg(z.im), z.re};
}
template <typename V>
Complex<V> turned_back(const Complex<V>& z) {
  return {z.im, Neg(z.re)};
}
// |size| with the other's sign, that of a zero too.
template <typename V>
V with_sign(const V& size, const V& sign) {
  const V zero = number<V>(0), negative = Or(Gt(zero, sign), Gt(zero, Div(number<V>(1), sign)));
  return Select(negative, Neg(Abs(size)), Abs(size));
}
// |z| by the larger part, so that no square overflows.
template <typename V>
V size(const Complex<V>& z) {
  const V a = Abs(z.re), b = Abs(z.im), high = MaxNan(a, b), ratio = Div(MinNan(a, b), high);
  const V root = Sqrt(Add(Mul(ratio, ratio), number<V>(1)));
  const V found = Select(Or(is_zero(high), is_infinite(high)), high, Mul(high, root));
  return Select(Or(is_infinite(a), is_infinite(b)), number<V>(std::numeric_limits<double>::infinity()), found);
}
template <typename V>
Complex<V> none() {
  return {};
}

}  // namespace complex

template <typename V>
Complex<V> Add(const Complex<V>& a, const Complex<V>& b) {
  using namespace complex;
  return {Add(a.re, b.re), Add(a.im, b.im)};
}
template <typename V>
Complex<V> Sub(const Complex<V>& a, const Complex<V>& b) {
  using namespace complex;
  return {Sub(a.re, b.re), Sub(a.im, b.im)};
}
template <typename V>
Complex<V> Neg(const Complex<V>& z) {
  using namespace complex;
  return {Neg(z.re), Neg(z.im)};
}
template <typename V>
Complex<V> Mul(const Complex<V>& a, const Complex<V>& b) {
  using namespace complex;
  return {Sub(Mul(a.re, b.re), Mul(a.im, b.im)), Add(Mul(a.re, b.im), Mul(a.im, b.re))};
}
template <typename V>
Complex<V> MulAdd(const Complex<V>& a, const Complex<V>& b, const Complex<V>& c) {
  return Add(Mul(a, b), c);
}
// With both divided by the larger part of b, so that no square overflows.
template <typename V>
Complex<V> Div(const Complex<V>& a, const Complex<V>& b) {
  using namespace complex;
  const V largest = MaxNan(Abs(b.re), Abs(b.im));
  const V most = Select(Or(is_zero(largest), is_infinite(largest)), number<V>(1), largest);
  const Complex<V> u = {Div(a.re, most), Div(a.im, most)}, v = {Div(b.re, most), Div(b.im, most)};
  const V square = Add(Mul(v.re, v.re), Mul(v.im, v.im));
  const Complex<V> product = Mul(u, conjugate(v));
  return {Div(product.re, square), Div(product.im, square)};
}
template <typename V>
Complex<V> Quotient(const Complex<V>& a, const Complex<V>& b) {
  return Div(a, b);
}
template <typename V>
Complex<V> Abs(const Complex<V>& z) {
  return {complex::size(z), complex::number<V>(0)};
}
// A real number stays one: inf times sin 0 is no number.
template <typename V>
Complex<V> Exp(const Complex<V>& z) {
  using namespace complex;
  const V size = Exp(z.re);
  return choose(is_zero(z.im), Complex<V>{size, z.im}, Complex<V>{Mul(size, Cos(z.im)), Mul(size, Sin(z.im))});
}
template <typename V>
Complex<V> Exp2(const Complex<V>& z) {
  return Exp(complex::scaled(z, std::numbers::ln2));
}
// e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y / 2).
template <typename V>
Complex<V> Expm1(const Complex<V>& z) {
  using namespace complex;
  const V half = Sin(Mul(z.im, number<V>(0.5)));
  return {Sub(Mul(Expm1(z.re), Cos(z.im)), Mul(Mul(half, half), number<V>(2))), Mul(Exp(z.re), Sin(z.im))};
}
template <typename V>
Complex<V> Log(const Complex<V>& z) {
  using namespace complex;
  return {Log(size(z)), Atan2(z.im, z.re)};
}
template <typename V>
Complex<V> Log2(const Complex<V>& z) {
  return complex::scaled(Log(z), 1 / std::numbers::ln2);
}
template <typename V>
Complex<V> Log10(const Complex<V>& z) {
  return complex::scaled(Log(z), 1 / std::numbers::ln10);
}
// |1 + z|^2 = 1 + (x (2 + x) + y^2), of which log1p loses no digits near 0; far out by the logarithm itself.
template <typename V>
Complex<V> Log1p(const Complex<V>& z) {
  using namespace complex;
  const V square = Add(Mul(z.re, Add(z.re, number<V>(2))), Mul(z.im, z.im));
  const V near = Mul(Log1p(square), number<V>(0.5));
  const Complex<V> far = Log(shifted(z, 1));
  return {Select(Gt(number<V>(0.5), Abs(square)), near, far.re), far.im};
}
// With w = sqrt((|z| + |x|) / 2): w + i y / 2w for x >= 0, else |y| / 2w + i w with y's sign.
template <typename V>
Complex<V> Sqrt(const Complex<V>& z) {
  using namespace complex;
  const V root = Sqrt(Mul(Add(size(z), Abs(z.re)), number<V>(0.5)));
  const V other = Div(Mul(z.im, number<V>(0.5)), Select(is_zero(root), number<V>(1), root));
  const Complex<V> right = {root, other}, left = {Abs(other), with_sign(root, z.im)};
  const V on_the_left = Gt(number<V>(0), z.re);
  return choose(is_infinite(z.im), Complex<V>{Abs(z.im), z.im}, choose(on_the_left, left, right));
}
template <typename V>
Complex<V> Sigmoid(const Complex<V>& z) {
  return Div(Complex<V>::constant(1), complex::shifted(Exp(Neg(z)), 1));
}
template <typename V>
Complex<V> Silu(const Complex<V>& z) {
  return Div(z, complex::shifted(Exp(Neg(z)), 1));
}
template <typename V>
Complex<V> Sin(const Complex<V>& z) {
  using namespace complex;
  return {Mul(Sin(z.re), Cosh(z.im)), Mul(Cos(z.re), Sinh(z.im))};
}
template <typename V>
Complex<V> Cos(const Complex<V>& z) {
  using namespace complex;
  return {Mul(Cos(z.re), Cosh(z.im)), Neg(Mul(Sin(z.re), Sinh(z.im)))};
}
template <typename V>
Complex<V> Sinh(const Complex<V>& z) {
  return complex::turned_back(Sin(complex::turned(z)));
}
template <typename V>
Complex<V> Cosh(const Complex<V>& z) {
  return Cos(complex::turned(z));
}
// (sinh 2x + i sin 2y) / (cosh 2x + cos 2y); beyond 20 the sign of x and 4 e^-2|x| sin y cos y.
template <typename V>
Complex<V> Tanh(const Complex<V>& z) {
  using namespace complex;
  const V limit = number<V>(20), two = number<V>(2), x = Abs(z.re), angle = Mul(z.im, two);
  const V twice = Mul(with_sign(MinNan(x, limit), z.re), two);
  const V below = Add(Cosh(twice), Cos(angle));
  const Complex<V> near = {Div(Sinh(twice), below), Div(Sin(angle), below)};
  const V fading = Mul(Exp(Mul(x, number<V>(-2))), two);
  const Complex<V> far = {with_sign(number<V>(1), z.re), Mul(fading, Sin(angle))};
  return choose(Gt(x, limit), far, near);
}
template <typename V>
Complex<V> Tan(const Complex<V>& z) {
  return complex::turned_back(Tanh(complex::turned(z)));
}
template <typename V>
Complex<V> Acos(const Complex<V>& z) {
  using namespace complex;
  const Complex<V> below = Sqrt(shifted(Neg(z), 1)), above = Sqrt(shifted(z, 1));
  return {Mul(Atan2(below.re, above.re), number<V>(2)), Asinh(Mul(conjugate(above), below).im)};
}
template <typename V>
Complex<V> Asin(const Complex<V>& z) {
  using namespace complex;
  const Complex<V> below = Sqrt(shifted(Neg(z), 1)), above = Sqrt(shifted(z, 1));
  return {Atan2(z.re, Mul(below, above).re), Asinh(Mul(conjugate(below), above).im)};
}
template <typename V>
Complex<V> Asinh(const Complex<V>& z) {
  return complex::turned_back(Asin(complex::turned(z)));
}
template <typename V>
Complex<V> Acosh(const Complex<V>& z) {
  using namespace complex;
  const Complex<V> below = Sqrt(shifted(z, -1)), above = Sqrt(shifted(z, 1));
  return {Asinh(Mul(conjugate(below), above).re), Mul(Atan2(below.im, above.re), number<V>(2))};
}
// log1p(4x / ((1 - x)^2 + y^2)) / 4 and atan2(2y, (1 - x)(1 + x) - y^2) / 2.
template <typename V>
Complex<V> Atanh(const Complex<V>& z) {
  using namespace complex;
  const V rest = Add(Neg(z.re), number<V>(1)), square = Mul(z.im, z.im);
  const V share = Div(Mul(z.re, number<V>(4)), Add(Mul(rest, rest), square));
  const V angle = Atan2(Mul(z.im, number<V>(2)), Sub(Mul(rest, Add(z.re, number<V>(1))), square));
  return {Mul(Log1p(share), number<V>(0.25)), Mul(angle, number<V>(0.5))};
}
template <typename V>
Complex<V> Atan(const Complex<V>& z) {
  return complex::turned_back(Atanh(complex::turned(z)));
}
// e^(w log z); 0^0 is 1, another power of 0 is 0.
template <typename V>
Complex<V> Pow(const Complex<V>& z, const Complex<V>& w) {
  using namespace complex;
  const auto of_zero = choose(And(is_zero(w.re), is_zero(w.im)), Complex<V>::constant(1), Complex<V>::constant(0));
  return choose(And(is_zero(z.re), is_zero(z.im)), of_zero, Exp(Mul(w, Log(z))));
}

// What follows from an order, or is known of reals alone.
#define HETNN_REAL(word)                     \
  template <typename V>                      \
  Complex<V> word(const Complex<V>& /*z*/) { \
    return complex::none<V>();               \
  }
#define HETNN_REAL2(word)                                             \
  template <typename V>                                               \
  Complex<V> word(const Complex<V>& /*a*/, const Complex<V>& /*b*/) { \
    return complex::none<V>();                                        \
  }
HETNN_REAL2(Gt)
HETNN_REAL2(Ge)
HETNN_REAL2(AtLeast)
HETNN_REAL2(AtMost)
HETNN_REAL2(MaxNan)
HETNN_REAL2(MinNan)
HETNN_REAL2(Atan2)
HETNN_REAL2(Fmod)
HETNN_REAL2(Remainder)
HETNN_REAL2(FloorDivide)
HETNN_REAL(Erf)
HETNN_REAL(Erfc)
HETNN_REAL(RoundDown)
HETNN_REAL(RoundUp)
HETNN_REAL(RoundToZero)
HETNN_REAL(RoundToEven)
#define HETNN_REAL_1 HETNN_REAL
#define HETNN_REAL_2 HETNN_REAL2
#define HETNN_SPECIAL(name, word, operands, ...) HETNN_REAL_##operands(word)
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_REAL
#undef HETNN_REAL2
#undef HETNN_REAL_1
#undef HETNN_REAL_2
template <typename V>
Complex<V> Select(const Complex<V>& /*condition*/, const Complex<V>& /*a*/, const Complex<V>& /*b*/) {
  return complex::none<V>();
}
// NOLINTEND(readability-identifier-naming)

}  // namespace hetnn::ops
