// The series of series.inc for one double.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

namespace hetnn::ops::special {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
namespace series {

using V = double;

// clang-format off
inline V Const(double value) { return value; }
inline V Add(V x, V y) { return x + y; }
inline V Sub(V x, V y) { return x - y; }
inline V Mul(V x, V y) { return x * y; }
inline V Div(V x, V y) { return x / y; }
inline V MulAdd(V x, V y, V z) { return x * y + z; }
inline V Neg(V x) { return -x; }
inline V Abs(V x) { return std::abs(x); }
inline V Sqrt(V x) { return std::sqrt(x); }
inline V Exp(V x) { return std::exp(x); }
inline V Log(V x) { return std::log(x); }
inline V Sin(V x) { return std::sin(x); }
inline V Cos(V x) { return std::cos(x); }
inline V RoundToEven(V x) { return std::nearbyint(x); }
inline V CopySign(V x, V sign) { return std::copysign(x, sign); }
inline bool Gt(V x, V y) { return x > y; }
inline bool Ge(V x, V y) { return x >= y; }
inline V Select(bool first, V x, V y) { return first ? x : y; }
template <typename F, typename G> V Choose(bool first, F f, G g) { return first ? f() : g(); }
// clang-format on

// c[0] + c[1] t + c[2] t^2 + ..., the even powers beside the odd ones.
template <size_t kCount>
V Polynomial(V t, const double (&c)[kCount]) {
  const V square = t * t;
  V last = c[kCount - 1], other = c[kCount - 2];
  for (size_t k = kCount - 2; k >= 2; k -= 2) {
    last = last * square + c[k - 1];
    other = other * square + c[k - 2];
  }
  if constexpr (kCount % 2 == 0) return last * t + other;
  return last * square + c[0] + other * t;
}

#include "hetnn/ops/special/series.inc"

}  // namespace series
// NOLINTEND(readability-identifier-naming)

}  // namespace hetnn::ops::special
