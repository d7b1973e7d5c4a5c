// Functions around gamma, the error function and the zeta function.
#include <cmath>
#include <limits>
#include <numbers>

#include "hetnn/ops/special/functions.h"
#include "hetnn/ops/special/series.h"

namespace hetnn::ops::special {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// x^a e^-x / gamma(a).
double gamma_density(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

// The lower function by its series, for x < a + 1.
double lower_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; std::abs(term) > std::abs(sum) * kEps / 4 && n < a + 10000; n += 1) {
    term *= x / n;
    sum += term;
  }
  return sum * gamma_density(a, x);
}

// The upper function by its continued fraction (Lentz), for x >= a + 1.
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int n = 1; n < 10000; ++n) {
    const double factor = -n * (n - a);
    b += 2;
    d = factor * d + b;
    c = b + factor / c;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = std::abs(c) < kTiny ? kTiny : c;
    h *= d * c;
    if (std::abs(d * c - 1) < kEps) break;
  }
  return h * gamma_density(a, x);
}

}  // namespace

double lgamma(double x) { return std::lgamma(x); }

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0) {
    if (x == std::trunc(x)) return kNan;
    const double fraction = x - std::trunc(x);
    return digamma(1 - x) - kPi / std::tan(kPi * fraction);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  const double z = 1 / (x * x);
  const double tail =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760))))));
  return sum + std::log(x) - 0.5 / x - tail;
}

double trigamma(double x) {
  if (x < 0.5) {
    const double s = std::sin(kPi * x);
    return kPi * kPi / (s * s) - trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 12; x += 1) sum += 1 / (x * x);
  const double z = 1 / (x * x);
  return sum + (1 + 0.5 / x + z * (1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z / 30)))) / x;
}

double polygamma(double n, double x) {
  if (n != std::trunc(n)) return kNan;
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  return (std::fmod(n, 2) == 0 ? -1 : 1) * std::exp(std::lgamma(n + 1)) * zeta(n + 1, x);
}

namespace {

// The reflection at 1/2, recurrence up to x > 6, then the asymptotic series.
float trigamma_f32(float x) {
  if (x < 0.5F) {
    const float size = std::numbers::pi_v<float> / std::sin(std::numbers::pi_v<float> * x);
    return size * size - trigamma_f32(1 - x);
  }
  float sum = 0;
  for (int k = 0; k < 6; ++k, x += 1) sum += 1 / (x * x);
  const float square = 1 / (x * x);
  return sum + (1 + 1 / (2 * x) + square * (1.0F / 6 - square * (1.0F / 30 - square / 42))) / x;
}

}  // namespace

float polygamma(float n, float x) {
  return n == 1 ? trigamma_f32(x) : static_cast<float>(polygamma(static_cast<double>(n), static_cast<double>(x)));
}

// Euler and Maclaurin: the sum of the first terms, an integral, and its corrections by Bernoulli numbers.
double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNan;
  }
  double sum = std::pow(q, -s), last = q;
  for (int k = 1; k <= 9 || last <= 9; ++k) {
    last = q + k;
    const double term = std::pow(last, -s);
    sum += term;
    if (std::abs(term) < std::abs(sum) * kEps / 4) return sum;
  }
  const double term = std::pow(last, -s);
  sum += term * last / (s - 1) - 0.5 * term;
  // (2k)! / B_2k
  constexpr double kCoefficients[] = {12.0,
                                      -720.0,
                                      30240.0,
                                      -1209600.0,
                                      47900160.0,
                                      -1.8924375803183791606e9,
                                      7.47242496e10,
                                      -2.950130727918164224e12,
                                      1.1646782814350067249e14,
                                      -4.5979787224074726105e15,
                                      1.8152105401943546773e17,
                                      -7.1661652561756670113e18};
  double rising = 1, power = term, k = 0;
  for (const double coefficient : kCoefficients) {
    rising *= s + k;
    power /= last;
    const double correction = rising * power / coefficient;
    sum += correction;
    if (std::abs(correction) < std::abs(sum) * kEps / 4) break;
    rising *= s + k + 1;
    power /= last;
    k += 2;
  }
  return sum;
}

double igamma(double a, double x) {
  if (x < 0 || a < 0 || std::isnan(a) || std::isnan(x)) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double igammac(double a, double x) {
  if (x < 0 || a < 0 || std::isnan(a) || std::isnan(x)) return kNan;
  if (a == 0) return x > 0 ? 0 : kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

double erfcx(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  const double z = 1 / (x * x);
  return (1 - z * (0.5 - z * (0.75 - z * 1.875))) / (x * std::sqrt(kPi));
}

double erfinv(double x) {
  const double size = std::abs(x);
  if (!(size < 1)) return size == 1 ? std::copysign(kInf, x) : kNan;
  if (size > 0.5) return std::copysign(ndtri((1 - size) / 2) / std::numbers::sqrt2, x);
  double y = series::SingleErfinv(size);
  y -= (std::erf(y) - size) * std::exp(y * y) / (2 * std::numbers::inv_sqrtpi);
  return std::copysign(y, x);
}

// Newton's method on log p = log(erfc(-y / sqrt 2) / 2), from the digits that f32 needs.
double ndtri(double p) {
  if (p < 0 || p > 1 || std::isnan(p)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (p > 0.5) return -ndtri(1 - p);
  double y = series::SingleNdtri(p);
  for (int k = 0; k < 50; ++k) {
    const double mass = 0.5 * std::erfc(-y / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * y * y) / std::sqrt(2 * kPi);
    const double step = mass / density * std::log(mass / p);
    y -= step;
    // The next one would be its square.
    if (std::abs(step) <= 1e-8 * std::abs(y)) break;
  }
  return y;
}

}  // namespace hetnn::ops::special
