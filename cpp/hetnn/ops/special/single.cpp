// Special functions of f32: polynomials in double that have the digits of f32 and some more, where those of f64 take
// series and iterations. Each was fitted at the zeros of a Chebyshev polynomial; the bound beside it is its largest
// relative error.
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include "hetnn/ops/special/functions.h"

namespace hetnn::ops::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

// c[0] + c[1] t + c[2] t^2 + ..., the even powers beside the odd ones.
template <size_t kCount>
double polynomial(const double (&c)[kCount], double t) {
  static_assert(kCount % 2 == 1);
  const double square = t * t;
  double even = c[kCount - 1], odd = c[kCount - 2];
  for (size_t k = kCount - 1; k >= 2; k -= 2) {
    even = even * square + c[k - 2];
    if (k >= 3) odd = odd * square + c[k - 3];
  }
  return even + odd * t;
}

// exp(-x) I0(x) and exp(-x) I1(x) / x for x in [0,8] in t = x / 4 - 1 (1e-10), and both times sqrt(x) for x >= 8 in
// t = 16 / x - 1 (1.3e-10).
constexpr double kI0Near[] = {0.20700192122686634,   -0.11300432653445755,    0.09451562784640881,
                              -0.08904346700050586,  0.0873434437571494,      -0.08496283115434033,
                              0.07927479866106271,   -0.06954659124007051,    0.05678042003239003,
                              -0.04295691578834767,  0.030162278657834895,    -0.0197762059540742,
                              0.012004880361972135,  -0.00660461967931942,    0.0035351605554557798,
                              -0.002047344913804515, 0.0009516476103854183,   -0.00020575942835511984,
                              9.498316646490632e-05, -0.00013604736053251124, 5.072904939989495e-05};
constexpr double kI1Near[] = {0.04468770987592369,     -0.061124337989138036,   0.0680575998336482,
                              -0.06848260916179118,    0.06376740673211939,     -0.055279975801312276,
                              0.04467452582903179,     -0.03367197855222366,    0.023686388319873134,
                              -0.015567953018802656,   0.009582246791829403,    -0.005545397984371273,
                              0.003010685034448974,    -0.0015170917538835167,  0.0007354894251530601,
                              -0.00036857179403443173, 0.00015894515287912032,  -4.0710194111265285e-05,
                              1.6755710169588746e-05,  -1.7467917501733633e-05, 6.15312538633252e-06};
constexpr double kI0Far[] = {0.4021765094311012,     0.0033605522417212946, 0.00013621678379131864,
                             1.1139815656132074e-05, 1.478017992155282e-06, 3.073322976867028e-07,
                             1.0563581478172926e-07, 3.161985129252454e-08, 1.521803830519378e-09};
constexpr double kI1Far[] = {0.38939845904068426,     -0.009749577457556542,   -0.00021923651818247136,
                             -1.5035268031246123e-05, -1.8287267297063192e-06, -3.5842988488496294e-07,
                             -1.1787457447245362e-07, -3.577436063784745e-08,  -2.4287995183633393e-09};
// (1 + 2x) exp(x^2) erfc(x) for x >= 0 in t = (x - 3) / (x + 3) (1e-10).
constexpr double kErfcx[] = {1.2530080582680243,     -0.1356211044940226,     -0.04756229412652668,
                             0.12964509696903598,    -0.11927366842671049,    0.06830870677154365,
                             -0.02377047203939237,   0.002526068868174926,    0.0018885053331558644,
                             -0.0007713736766101138, -0.00010470633512915678, 0.00011324624028775795,
                             4.280482689377915e-06,  -1.1057230166398064e-05, -1.1960964149281165e-07};

double scaled_i0(double size) {
  if (size > 8) return polynomial(kI0Far, 16 / size - 1) / std::sqrt(size);
  return polynomial(kI0Near, size / 4 - 1);
}
double scaled_i1(double size) {
  if (size > 8) return polynomial(kI1Far, 16 / size - 1) / std::sqrt(size);
  return size * polynomial(kI1Near, size / 4 - 1);
}

double scaled_erfc(double x) { return polynomial(kErfcx, 1 - 6 / (x + 3)) / (1 + 2 * x); }

// The quantile of p = 1/2 + q, for |q| below 0.47575, and of p in the lower tail, by P. J. Acklam (1.15e-9).
double central_quantile(double q) {
  const double r = q * q;
  const double numerator = ((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
                             1.383577518672690e+02) *
                                r -
                            3.066479806614716e+01) *
                               r +
                           2.506628277459239e+00;
  const double denominator = ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
                               6.680131188771972e+01) *
                                  r -
                              1.328068155288572e+01) *
                                 r +
                             1;
  return q * numerator / denominator;
}
double tail_quantile(double p) {
  const double q = std::sqrt(-2 * std::log(p));
  const double numerator = ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
                             2.549732539343734e+00) *
                                q +
                            4.374664141464968e+00) *
                               q +
                           2.938163982698783e+00;
  const double denominator =
      (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q + 3.754408661907416e+00) *
          q +
      1;
  return numerator / denominator;
}
constexpr double kTail = 0.02425;

// Of x > 0: Stirling's series above 8, to which gamma(x + 8) = x (x + 1) ... (x + 7) gamma(x) leads.
double positive_lgamma(double x) {
  double behind = 0;
  if (x < 8) {
    behind = std::log(x * (x + 1) * (x + 2) * (x + 3) * ((x + 4) * (x + 5)) * ((x + 6) * (x + 7)));
    x += 8;
  }
  if (x > 1e300) return x;  // infinite, of which the terms below would have no difference
  const double z = 1 / x, square = z * z;
  const double series = z * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  return (x - 0.5) * std::log(x) - x + 0.5 * std::log(2 * kPi) + series - behind;
}

}  // namespace

float scaled_modified_bessel_i0(float x) { return static_cast<float>(scaled_i0(std::abs(static_cast<double>(x)))); }
float scaled_modified_bessel_i1(float x) {
  return std::copysign(static_cast<float>(scaled_i1(std::abs(static_cast<double>(x)))), x);
}
float modified_bessel_i0(float x) {
  const double size = std::abs(static_cast<double>(x));
  return static_cast<float>(std::exp(size) * scaled_i0(size));
}
float modified_bessel_i1(float x) {
  const double size = std::abs(static_cast<double>(x));
  return std::copysign(static_cast<float>(std::exp(size) * scaled_i1(size)), x);
}

float erfcx(float x) {
  const double wide = x;
  return static_cast<float>(wide < 0 ? 2 * std::exp(wide * wide) - scaled_erfc(-wide) : scaled_erfc(wide));
}

float erfinv(float x) {
  const double size = std::abs(static_cast<double>(x));
  if (!(size < 1)) return size == 1 ? std::copysign(std::numeric_limits<float>::infinity(), x) : NAN;
  const double tail = (1 - size) / 2;
  const double y = tail < kTail ? -tail_quantile(tail) : central_quantile(size / 2);
  return std::copysign(static_cast<float>(y / std::numbers::sqrt2), x);
}

float ndtri(float p) {
  const double below = p, above = 1 - below;
  if (!(below > 0 && above > 0)) return static_cast<float>(below == 0 ? -kInf : above == 0 ? kInf : kNan);
  if (below < kTail) return static_cast<float>(tail_quantile(below));
  return static_cast<float>(above < kTail ? -tail_quantile(above) : central_quantile(below - 0.5));
}

float lgamma(float x) {
  const double wide = x;
  if (!(wide <= 0)) return static_cast<float>(positive_lgamma(wide));
  if (wide == std::floor(wide)) return std::numeric_limits<float>::infinity();
  // gamma(x) gamma(1 - x) = pi / sin(pi x).
  const double sine = std::sin(kPi * (wide - std::round(wide)));
  return static_cast<float>(std::log(kPi / std::abs(sine)) - positive_lgamma(1 - wide));
}

float digamma(float x) {
  double wide = x;
  if (wide == 0) return std::copysign(std::numeric_limits<float>::infinity(), -x);
  double reflected = 0;
  if (wide < 0) {
    if (wide == std::trunc(wide)) return NAN;
    reflected = kPi / std::tan(kPi * (wide - std::trunc(wide)));
    wide = 1 - wide;
  }
  // 1 / x + ... + 1 / (x + 5) as one quotient, then the asymptotic series above 6.
  double over = 0, under = 1;
  if (wide < 6) {
    for (int k = 0; k < 6; ++k, wide += 1) {
      over = over * wide + under;
      under *= wide;
    }
  }
  const double z = 1 / wide, square = z * z;
  const double series =
      square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132))));
  return static_cast<float>(std::log(wide) - 0.5 * z - series - over / under - reflected);
}

}  // namespace hetnn::ops::special
