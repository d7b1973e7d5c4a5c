// Bessel and Airy functions, orthogonal polynomials.
#include <cmath>
#include <limits>
#include <numbers>

#include "hetnn/ops/special/functions.h"
#include "hetnn/ops/special/series.h"

namespace hetnn::ops::special {
namespace {

// sqrt(2 pi x) exp(-x) I_n(x) for large x: a falling series in 1/x.
double scaled_tail(double order, double x) {
  const double mu = 4 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 20; ++k) {
    const double odd = 2 * k - 1;
    term *= -(mu - odd * odd) / (8 * k * x);
    sum += term;
  }
  return sum;
}

constexpr double kLarge = 60;  // where the series above has all digits

double scaled_i(double order, double x) {
  const double size = std::abs(x);
  const double value = size > kLarge ? scaled_tail(order, size) / std::sqrt(2 * kPi * size)
                                     : std::exp(-size) * std::cyl_bessel_i(order, size);
  return order == 1 && x < 0 ? -value : value;
}

// A step a degree takes a millisecond an element then.
constexpr int64_t kMostDegree = 1 << 20;

// p_n of p_{k+1} = next(k, p_k, p_{k-1}) from p_0 = 1 and p_1; 0 for n < 0, NaN beyond the highest degree.
template <typename T, typename Next>
T polynomial(T n, T first, Next next) {
  // No number, and what no integer holds, is as below 0; as in torch.
  if (!(n > -1 && n < static_cast<T>(0x1p63))) return 0;
  const auto degree = static_cast<int64_t>(n);
  T before = 1, at = first;
  if (degree == 0) return 1;
  if (degree > kMostDegree) return std::numeric_limits<T>::quiet_NaN();
  for (int64_t k = 1; k < degree && !std::isnan(at); ++k) {
    const T after = next(static_cast<T>(k), at, before);
    before = at;
    at = after;
  }
  return at;
}

double chebyshev(double x, double n, double first) {
  return polynomial(n, first, [x](double, double at, double before) { return 2 * x * at - before; });
}

}  // namespace

double bessel_j0(double x) { return series::SeriesJ0(x); }
double bessel_j1(double x) { return series::SeriesJ1(x); }
double bessel_y0(double x) { return series::SeriesY0(x); }
double bessel_y1(double x) { return series::SeriesY1(x); }
double i0e(double x) { return std::isnan(x) ? x : scaled_i(0, x); }
double i1e(double x) { return std::isnan(x) ? x : scaled_i(1, x); }
double i0(double x) { return std::exp(std::abs(x)) * i0e(x); }
double i1(double x) { return std::exp(std::abs(x)) * i1e(x); }
double scaled_modified_bessel_k0(double x) { return series::SeriesK0e(x); }
double scaled_modified_bessel_k1(double x) { return series::SeriesK1e(x); }
double modified_bessel_k0(double x) { return series::SeriesK0(x); }
double modified_bessel_k1(double x) { return series::SeriesK1(x); }

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::abs(x) < 1e-4 ? 1 - x * x / 6 : std::sin(x) / x;
}

double airy_ai(double x) {
  if (std::isnan(x)) return x;
  constexpr double kThird = 1.0 / 3;
  if (x == 0) return 0.35502805388781723926;
  const double size = std::abs(x), argument = 2.0 / 3 * size * std::sqrt(size);
  if (x > 0) return x > 100 ? 0 : std::sqrt(x / 3) / kPi * std::cyl_bessel_k(kThird, argument);
  const double j = std::cyl_bessel_j(kThird, argument), y = std::cyl_neumann(kThird, argument);
  // J of order -1/3 is cos(pi/3) J - sin(pi/3) Y.
  return std::sqrt(size) / 3 * (1.5 * j - 0.5 * std::numbers::sqrt3 * y);
}

double chebyshev_polynomial_t(double x, double n) { return chebyshev(x, n, x); }
double shifted_chebyshev_polynomial_t(double x, double n) { return chebyshev_polynomial_t(2 * x - 1, n); }
double chebyshev_polynomial_u(double x, double n) { return chebyshev(x, n, 2 * x); }
double shifted_chebyshev_polynomial_u(double x, double n) { return chebyshev_polynomial_u(2 * x - 1, n); }
double chebyshev_polynomial_v(double x, double n) { return chebyshev(x, n, 2 * x - 1); }
double shifted_chebyshev_polynomial_v(double x, double n) { return chebyshev_polynomial_v(2 * x - 1, n); }
double chebyshev_polynomial_w(double x, double n) { return chebyshev(x, n, 2 * x + 1); }
double shifted_chebyshev_polynomial_w(double x, double n) { return chebyshev_polynomial_w(2 * x - 1, n); }
double hermite_polynomial_h(double x, double n) {
  return polynomial(n, 2 * x, [x](double k, double at, double before) { return 2 * x * at - 2 * k * before; });
}
double hermite_polynomial_he(double x, double n) {
  return polynomial(n, x, [x](double k, double at, double before) { return x * at - k * before; });
}
float hermite_polynomial_he(float x, float n) {
  return polynomial(n, x, [x](float k, float at, float before) { return std::fma(x, at, -(k * before)); });
}
double laguerre_polynomial_l(double x, double n) {
  return polynomial(n, 1 - x,
                    [x](double k, double at, double before) { return ((2 * k + 1 - x) * at - k * before) / (k + 1); });
}
double legendre_polynomial_p(double x, double n) {
  return polynomial(n, x,
                    [x](double k, double at, double before) { return ((2 * k + 1) * x * at - k * before) / (k + 1); });
}

}  // namespace hetnn::ops::special
