// Interval arithmetic: each word of the formulas' vocabulary, by its corners where it is monotone.
#include "hetnn/passes/range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::passes {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kGreatest = std::numeric_limits<float>::max();
constexpr double kTiny = std::numeric_limits<float>::min();  // below it f32 has fewer digits, or 0
// Of one operation, as a share of its result: two roundings to f32. Of a function computed in lanes: 16.
constexpr double kRounding = 0x1p-23;
constexpr double kOfFunction = 0x1p-20;

double below(double bound, double share, double more) {
  if (bound == 0 || std::isinf(bound)) return bound - more;
  const double lower = bound - std::abs(bound) * share - kTiny - more;
  return lower < -kGreatest ? -kInf : std::min(lower, kGreatest);
}

// Bounds of what is computed to so many digits: f32 may end in infinity where the bounds do not.
Range outward(double lo, double hi, bool nan, double share = kRounding, double more = 0) {
  return {std::isnan(lo) ? -kInf : below(lo, share, more), std::isnan(hi) ? kInf : -below(-hi, share, more), nan};
}

bool holds(const Range& x, double value) { return x.lo <= value && value <= x.hi; }
bool is_endless(const Range& x) { return x.lo == -kInf || x.hi == kInf; }
Range anything() { return {}; }

// By f, which grows on [from, to] and has no value beyond; its codomain is cut to [least, most].
template <typename F>
Range growing(const Range& x, F f, double from = -kInf, double to = kInf, double more = 0, double least = -kInf,
              double most = kInf) {
  const bool nan = x.nan || x.lo < from || x.hi > to;
  const double lo = std::max(x.lo, from), hi = std::min(x.hi, to);
  if (!(lo <= hi)) return Range::none(nan);
  const Range out = outward(f(lo), f(hi), nan, kOfFunction, more);
  return {std::max(out.lo, least), std::min(out.hi, most), nan};
}

Range corners(std::initializer_list<double> values, bool nan, double share) {
  return outward(std::min(values), std::max(values), nan, share);
}

// 0 times infinity is no number: what comes near it lies between 0 and the other corners.
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }
double over(double a, double b) { return std::isinf(b) ? 0 : a / b; }

// A wave with its crests at `crest` + 2 pi k.
Range wave(const Range& x, double (*f)(double), double crest) {
  if (x.empty()) return x;
  const bool nan = x.nan || is_endless(x);
  constexpr double kLargest = 1e6, kSlack = 1e-6, kTurn = 2 * std::numbers::pi;
  if (x.hi - x.lo >= kTurn || x.largest() > kLargest) return {-1 - kSlack, 1 + kSlack, nan};
  const auto reaches = [&](double at) { return at + kTurn * std::ceil((x.lo - kSlack - at) / kTurn) <= x.hi + kSlack; };
  const double a = f(x.lo), b = f(x.hi);
  return outward(reaches(crest + std::numbers::pi) ? -1 : std::min(a, b), reaches(crest) ? 1 : std::max(a, b), nan,
                 kOfFunction, kSlack);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
struct Truth {
  bool may_hold, may_fail;
};

static Truth Gt(const Range& x, const Range& y) {
  const bool none = x.empty() || y.empty();
  return {!none && x.hi > y.lo, x.nan || y.nan || (!none && !(x.lo > y.hi))};
}

static Truth Ge(const Range& x, const Range& y) {
  const bool none = x.empty() || y.empty();
  return {!none && x.hi >= y.lo, x.nan || y.nan || (!none && !(x.lo >= y.hi))};
}

static Range Select(const Truth& condition, const Range& x, const Range& y) {
  if (!condition.may_fail) return condition.may_hold ? x : Range::none(false);
  return condition.may_hold ? hull(x, y) : y;
}

static Range AtLeast(const Range& limit, const Range& x) {
  if (x.empty() || limit.empty()) return x;
  return {limit.nan ? x.lo : std::max(limit.lo, x.lo), std::max(limit.hi, x.hi), x.nan};
}
static Range Neg(const Range& x) { return {-x.hi, -x.lo, x.nan}; }
static Range AtMost(const Range& limit, const Range& x) { return Neg(AtLeast(Neg(limit), Neg(x))); }
static Range MaxNan(const Range& x, const Range& y) {
  if (x.empty() || y.empty()) return Range::none(x.nan || y.nan);
  return {std::max(x.lo, y.lo), std::max(x.hi, y.hi), x.nan || y.nan};
}
static Range MinNan(const Range& x, const Range& y) { return Neg(MaxNan(Neg(x), Neg(y))); }
static Range Abs(const Range& x) {
  if (x.empty()) return x;
  return {holds(x, 0) ? 0 : std::min(std::abs(x.lo), std::abs(x.hi)), x.largest(), x.nan};
}

static Range Add(const Range& x, const Range& y) {
  const bool nan = x.nan || y.nan;
  if (x.empty() || y.empty()) return Range::none(nan);
  const bool cancels = (x.hi == kInf && y.lo == -kInf) || (x.lo == -kInf && y.hi == kInf);
  return outward(x.lo + y.lo, x.hi + y.hi, nan || cancels);
}
static Range Sub(const Range& x, const Range& y) { return Add(x, Neg(y)); }
static Range Mul(const Range& x, const Range& y) {
  const bool nan = x.nan || y.nan;
  if (x.empty() || y.empty()) return Range::none(nan);
  const bool undefined = (is_endless(x) && holds(y, 0)) || (is_endless(y) && holds(x, 0));
  return corners({times(x.lo, y.lo), times(x.lo, y.hi), times(x.hi, y.lo), times(x.hi, y.hi)}, nan || undefined,
                 kRounding);
}
static Range MulAdd(const Range& x, const Range& y, const Range& z) { return Add(Mul(x, y), z); }
// Beside 0 quotients have no bounds; below the least normal f32 it may be 0 itself.
static Range Div(const Range& x, const Range& y) {
  const bool nan = x.nan || y.nan;
  if (x.empty() || y.empty()) return Range::none(nan);
  if (y.lo <= kTiny && y.hi >= -kTiny) return anything();
  return corners({over(x.lo, y.lo), over(x.lo, y.hi), over(x.hi, y.lo), over(x.hi, y.hi)},
                 nan || (is_endless(x) && is_endless(y)), kRounding);
}
static Range Quotient(const Range& x, const Range& y) { return Div(x, y); }

// clang-format off
static Range Sqrt(const Range& x) { return growing(x, [](double v) { return std::sqrt(v); }, 0, kInf, 0, 0); }
static Range Exp(const Range& x) { return growing(x, [](double v) { return std::exp(v); }, -kInf, kInf, 0, 0); }
static Range Exp2(const Range& x) { return growing(x, [](double v) { return std::exp2(v); }, -kInf, kInf, 0, 0); }
static Range Expm1(const Range& x) { return growing(x, [](double v) { return std::expm1(v); }, -kInf, kInf, 0, -1); }
static Range Sigmoid(const Range& x) { return growing(x, [](double v) { return 1 / (1 + std::exp(-v)); }, -kInf, kInf, 0, 0, 1); }
static Range Tanh(const Range& x) { return growing(x, [](double v) { return std::tanh(v); }, -kInf, kInf, 0, -1, 1); }
static Range Erf(const Range& x) { return growing(x, [](double v) { return std::erf(v); }, -kInf, kInf, 0, -1, 1); }
static Range Erfc(const Range& x) { return growing(Neg(x), [](double v) { return std::erfc(-v); }, -kInf, kInf, 0, 0); }
// Near 1 the share of logarithms' error may be more than its share of their result.
static Range Log(const Range& x) { return growing(x, [](double v) { return std::log(v); }, 0, kInf, 1e-6); }
static Range Log2(const Range& x) { return growing(x, [](double v) { return std::log2(v); }, 0, kInf, 1e-6); }
static Range Log10(const Range& x) { return growing(x, [](double v) { return std::log10(v); }, 0, kInf, 1e-6); }
static Range Log1p(const Range& x) { return growing(x, [](double v) { return std::log1p(v); }, -1); }
static Range Asin(const Range& x) { return growing(x, [](double v) { return std::asin(v); }, -1, 1); }
static Range Acos(const Range& x) { return growing(Neg(x), [](double v) { return std::acos(-v); }, -1, 1, 1e-6); }
static Range Atan(const Range& x) { return growing(x, [](double v) { return std::atan(v); }); }
static Range Sinh(const Range& x) { return growing(x, [](double v) { return std::sinh(v); }); }
static Range Cosh(const Range& x) { return growing(Abs(x), [](double v) { return std::cosh(v); }); }
static Range Asinh(const Range& x) { return growing(x, [](double v) { return std::asinh(v); }); }
static Range Acosh(const Range& x) { return growing(x, [](double v) { return std::acosh(v); }, 1, kInf, 1e-6); }
static Range Atanh(const Range& x) { return growing(x, [](double v) { return std::atanh(v); }, -1, 1); }
static Range Sin(const Range& x) { return wave(x, std::sin, std::numbers::pi / 2); }
static Range Cos(const Range& x) { return wave(x, std::cos, 0); }
static Range RoundDown(const Range& x) { return {std::floor(x.lo), std::floor(x.hi), x.nan}; }
static Range RoundUp(const Range& x) { return {std::ceil(x.lo), std::ceil(x.hi), x.nan}; }
static Range RoundToZero(const Range& x) { return {std::trunc(x.lo), std::trunc(x.hi), x.nan}; }
static Range RoundToEven(const Range& x) { return {std::nearbyint(x.lo), std::nearbyint(x.hi), x.nan}; }
// clang-format on

// x / (1 + e^-x) falls to its least, which lies at -1.2784645, and grows from there; far below f32 knows it as 0.
static Range Silu(const Range& x) {
  if (x.empty()) return x;
  constexpr double kTurn = -1.2784645427610738, kLeast = -0.27846454276107380, kFar = -80;
  const auto at = [](double v) { return v / (1 + std::exp(-v)); };
  const double a = at(std::max(x.lo, kFar)), b = at(std::max(x.hi, kFar)), most = x.lo < kFar ? std::max(b, 0.0) : b;
  return outward(holds(x, kTurn) ? kLeast : std::min(a, b), std::max(a, most), x.nan || x.lo < kFar, kOfFunction);
}

// Between two poles it grows.
static Range Tan(const Range& x) {
  if (x.empty()) return x;
  constexpr double kSlack = 1e-3;
  if (x.lo > -std::numbers::pi / 2 + kSlack && x.hi < std::numbers::pi / 2 - kSlack)
    return outward(std::tan(x.lo), std::tan(x.hi), x.nan, kOfFunction);
  return anything();
}

// A zero may be -0, which has an angle of -pi.
static Range Atan2(const Range& y, const Range& x) {
  if (x.empty() || y.empty()) return Range::none(x.nan || y.nan);
  return outward(y.lo > 0 ? 0 : -std::numbers::pi, std::numbers::pi, x.nan || y.nan, kOfFunction);
}

// Of x > 0 it is monotone in either operand. NaN to the 0 and 1 to NaN are 1.
static Range Pow(const Range& x, const Range& y) {
  const Range of_nan = x.nan || y.nan ? Range{1, 1, true} : Range::none(false);
  if (x.empty() || y.empty()) return of_nan;
  if (!(x.lo > 0)) return anything();
  const Range out = corners({std::pow(x.lo, y.lo), std::pow(x.lo, y.hi), std::pow(x.hi, y.lo), std::pow(x.hi, y.hi)},
                            false, kOfFunction);
  return hull({std::max(out.lo, 0.0), out.hi, false}, of_nan);
}

// Of the sign of x, and no larger than either.
static Range Fmod(const Range& x, const Range& y) {
  const bool nan = x.nan || y.nan;
  if (x.empty() || y.empty()) return Range::none(nan);
  const double most = std::min(x.largest(), y.largest());
  return outward(x.lo < 0 ? -most : 0, x.hi > 0 ? most : 0, nan || is_endless(x) || holds(y, 0));
}
static Range Remainder(const Range& x, const Range& y) {
  const bool nan = x.nan || y.nan;
  if (x.empty() || y.empty()) return Range::none(nan);
  return outward(std::min(y.lo, 0.0), std::max(y.hi, 0.0), nan || is_endless(x) || holds(y, 0));
}
static Range FloorDivide(const Range& x, const Range& y) {
  const Range quotient = Div(x, y);
  return {std::floor(quotient.lo) - 1, std::ceil(quotient.hi) + 1, quotient.nan || is_endless(x)};
}

#define HETNN_WORD_1(word) \
  static Range word(const Range& /*x*/) { return anything(); }
#define HETNN_WORD_2(word) \
  static Range word(const Range& /*x*/, const Range& /*y*/) { return anything(); }
#define HETNN_SPECIAL(name, word, operands, ...) HETNN_WORD_##operands(word)
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_WORD_1
#undef HETNN_WORD_2
// NOLINTEND(readability-identifier-naming)

double Range::largest() const { return std::max(std::abs(lo), std::abs(hi)); }

Range Range::constant(double value) {
  if (std::isnan(value)) return none(true);
  const double lanes = static_cast<float>(value);
  return {std::min(value, lanes), std::max(value, lanes), false};
}

Range hull(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.nan || b.nan}; }

// Formulas choose by comparing x to a constant, mostly 0: what is below, what is above and NaN take their own ways.
Range range_of(ops::Function function, const Range& x, const Range& y, const Range& c0, const Range& c1) {
  const Range parts[] = {{x.lo, std::min(x.hi, 0.0), false},
                         {std::max(x.lo, std::numeric_limits<double>::denorm_min()), x.hi, false}};
  Range out = Range::none(false);
  for (const Range& part : parts) {
    if (!part.empty()) out = hull(out, ops::apply(function, part, y, c0, c1));
  }
  return x.nan ? hull(out, ops::apply(function, Range::none(true), y, c0, c1)) : out;
}

Range stored(const Range& range, DType dtype) {
  if (!is_narrow_float(dtype) || range.empty()) return range;
  const auto rounded = [dtype](double bound) {
    return static_cast<double>(widen_float(dtype, narrow_float(dtype, static_cast<float>(bound))));
  };
  return {rounded(range.lo), rounded(range.hi), range.nan};
}

}  // namespace hetnn::passes
