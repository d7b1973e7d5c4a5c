// The vocabulary of formulas.inc for one value: reals by the C library, integers of any width wrapping on overflow.
// Names are those of the vector forms, kernels/vector_math-inl.h and vector_functions-inl.h.
// NOLINTBEGIN(readability-identifier-naming)
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

#include "hetnn/ops/special/functions.h"

namespace hetnn::ops::vocabulary {

/// Thrown by Div of integers.
struct DivisionByZero {};

template <typename V>
inline constexpr bool kReal = std::is_floating_point_v<V>;
/// What sums and products are computed in. Unsigned integers wrap; those narrower than int would become signed.
template <typename V>
using Sum = std::conditional_t<kReal<V>, V, std::conditional_t<(sizeof(V) <= sizeof(uint32_t)), uint32_t, uint64_t>>;

// clang-format off
template <typename V> bool Eq(V x, V y) { return x == y; }
template <typename V> bool Gt(V x, V y) { return x > y; }
template <typename V> bool Ge(V x, V y) { return x >= y; }
template <typename V> bool Holds(V x) { return static_cast<bool>(x); }
inline bool And(bool x, bool y) { return x && y; }
inline bool Or(bool x, bool y) { return x || y; }
inline bool Xor(bool x, bool y) { return x != y; }
inline bool Not(bool x) { return !x; }
template <typename V> V BitAnd(V x, V y) { return static_cast<V>(x & y); }
template <typename V> V BitOr(V x, V y) { return static_cast<V>(x | y); }
template <typename V> V BitXor(V x, V y) { return static_cast<V>(x ^ y); }
template <typename V> V BitNot(V x) { return static_cast<V>(~x); }
template <> inline bool BitNot(bool x) { return !x; }
// What an operand's slope brings where no derivative by it is known.
template <typename V> V Unknown(V slope) { return slope == V(0) ? slope : std::numeric_limits<V>::quiet_NaN(); }
template <typename V> V Select(bool first, V x, V y) { return first ? x : y; }
template <typename V> V AtLeast(V limit, V x) { return x < limit ? limit : x; }
template <typename V> V AtMost(V limit, V x) { return x > limit ? limit : x; }
template <typename V> V MaxNan(V x, V y) { return x != x ? x : AtLeast(x, y); }
template <typename V> V MinNan(V x, V y) { return x != x ? x : AtMost(x, y); }

template <typename V> V Add(V x, V y) { return static_cast<V>(static_cast<Sum<V>>(x) + static_cast<Sum<V>>(y)); }
template <typename V> V Sub(V x, V y) { return static_cast<V>(static_cast<Sum<V>>(x) - static_cast<Sum<V>>(y)); }
template <typename V> V Mul(V x, V y) { return static_cast<V>(static_cast<Sum<V>>(x) * static_cast<Sum<V>>(y)); }
template <typename V> V Neg(V x) { return static_cast<V>(-static_cast<Sum<V>>(x)); }

template <typename V> V Quotient(V x, V y) { return x / y; }
template <typename V> V MulAdd(V x, V y, V z) { return std::fma(x, y, z); }
template <typename V> V Sqrt(V x) { return std::sqrt(x); }
template <typename V> V Exp(V x) { return std::exp(x); }
template <typename V> V Sigmoid(V x) { return V(1) / (V(1) + std::exp(-x)); }
template <typename V> V Silu(V x) { return x / (V(1) + std::exp(-x)); }
template <typename V> V Expm1(V x) { return std::expm1(x); }
template <typename V> V Tanh(V x) { return std::tanh(x); }
template <typename V> V Erf(V x) { return std::erf(x); }
template <typename V> V Erfc(V x) { return std::erfc(x); }
template <typename V> V Log(V x) { return std::log(x); }
template <typename V> V Log2(V x) { return std::log2(x); }
template <typename V> V Log10(V x) { return std::log10(x); }
template <typename V> V Log1p(V x) { return std::log1p(x); }
template <typename V> V Exp2(V x) { return std::exp2(x); }
template <typename V> V Sin(V x) { return std::sin(x); }
template <typename V> V Cos(V x) { return std::cos(x); }
template <typename V> V Tan(V x) { return std::tan(x); }
template <typename V> V Asin(V x) { return std::asin(x); }
template <typename V> V Acos(V x) { return std::acos(x); }
template <typename V> V Atan(V x) { return std::atan(x); }
template <typename V> V Sinh(V x) { return std::sinh(x); }
template <typename V> V Cosh(V x) { return std::cosh(x); }
template <typename V> V Asinh(V x) { return std::asinh(x); }
template <typename V> V Acosh(V x) { return std::acosh(x); }
template <typename V> V Atanh(V x) { return std::atanh(x); }
template <typename V> V Atan2(V x, V y) { return std::atan2(x, y); }
// clang-format on

// The words of special functions.
#define HETNN_WORD_1(name, word) \
  template <typename V>          \
  V word(V x) {                  \
    return special::name(x);     \
  }
#define HETNN_WORD_2(name, word) \
  template <typename V>          \
  V word(V x, V y) {             \
    return special::name(x, y);  \
  }
#define HETNN_SPECIAL(name, word, operands, ...) HETNN_WORD_##operands(name, word)
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_WORD_1
#undef HETNN_WORD_2

template <typename V>
V Abs(V x) {
  if constexpr (kReal<V>) return std::abs(x);
  return Select(Gt(V(0), x), Neg(x), x);
}

/// Of integers: cut towards 0; the least by -1 wraps.
template <typename V>
V Div(V x, V y) {
  if constexpr (!kReal<V>) {
    if (y == V(0)) throw DivisionByZero();
    if (std::is_signed_v<V> && y == static_cast<V>(-1)) return Neg(x);
  }
  return static_cast<V>(x / y);
}

/// What is left of x after subtracting y as often as goes: of the sign of x. Integers by -1 leave 0.
template <typename V>
V Fmod(V x, V y) {
  if constexpr (kReal<V>) {
    return std::fmod(x, y);
  } else {
    if (y == V(0)) throw DivisionByZero();
    if (std::is_signed_v<V> && y == static_cast<V>(-1)) return 0;
    return static_cast<V>(x % y);
  }
}

/// The same, of the sign of y.
template <typename V>
V Remainder(V x, V y) {
  const V left = Fmod(x, y);
  return left != V(0) && (y < V(0)) != (left < V(0)) ? static_cast<V>(left + y) : left;
}

/// x / y cut downwards. Of reals: the whole number that goes with Remainder, as in Python.
template <typename V>
V FloorDivide(V x, V y) {
  if constexpr (!kReal<V>) {
    const V quotient = Div(x, y);
    return Fmod(x, y) != V(0) && (x < V(0)) != (y < V(0)) ? static_cast<V>(quotient - V(1)) : quotient;
  } else {
    if (y == 0) return x / y;
    const V left = std::fmod(x, y);
    V quotient = (x - left) / y;
    if (left != 0 && (y < 0) != (left < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(V(0), x / y);
    const V whole = std::floor(quotient);
    return quotient - whole > V(0.5) ? whole + 1 : whole;
  }
}

/// Of integers: repeated multiplication. 1 and -1 have inverses, the other integers (0 too) give 0 for y < 0.
template <typename V>
V Pow(V x, V y) {
  if constexpr (kReal<V>) {
    return std::pow(x, y);
  } else if constexpr (std::is_same_v<V, bool>) {
    return x || !y;
  } else {
    if (y < 0 && x != 1 && x != static_cast<V>(-1)) return 0;
    V power = 1;
    for (V base = x; y != 0; y = static_cast<V>(y / 2), base = Mul(base, base)) {
      if (y % 2 != 0) power = Mul(power, base);
    }
    return power;
  }
}

/// Whether a V has a bit number `place`.
template <typename V>
bool HasBit(V place) {
  return place >= V(0) && static_cast<uint64_t>(place) < 8 * sizeof(V);
}
template <typename V>
V ShiftLeft(V x, V places) {
  return HasBit(places) ? static_cast<V>(static_cast<uint64_t>(x) << places) : V(0);
}
template <typename V>
V ShiftRight(V x, V places) {
  return HasBit(places) ? static_cast<V>(x >> places) : static_cast<int64_t>(x) < 0 ? static_cast<V>(-1) : V(0);
}

/// Of the sizes of two integers.
template <typename V>
V Gcd(V x, V y) {
  using Size = Sum<V>;
  const auto size = [](V value) {
    return value < V(0) ? Size{0} - static_cast<Size>(value) : static_cast<Size>(value);
  };
  return static_cast<V>(std::gcd(size(x), size(y)));
}

template <typename V>
V RoundDown(V x) {
  if constexpr (kReal<V>) return std::floor(x);
  return x;
}
template <typename V>
V RoundUp(V x) {
  if constexpr (kReal<V>) return std::ceil(x);
  return x;
}
template <typename V>
V RoundToZero(V x) {
  if constexpr (kReal<V>) return std::trunc(x);
  return x;
}
template <typename V>
V RoundToEven(V x) {
  if constexpr (kReal<V>) return std::nearbyint(x);
  return x;
}

}  // namespace hetnn::ops::vocabulary
// NOLINTEND(readability-identifier-naming)
