// Functions of one or two reals that have no name in C++, and some that have, in double.
#pragma once

namespace hetnn::ops::special {

// Of one number. Outside their domain: NaN.
double lgamma(double x);   // log |gamma(x)|
double digamma(double x);  // d/dx log gamma(x)
double trigamma(double x);
double erfinv(double x);
double erfcx(double x);  // exp(x^2) erfc(x)
double ndtri(double p);  // inverse of the normal distribution function
double airy_ai(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double i0(double x);
double i1(double x);
double i0e(double x);  // exp(-|x|) I0(x)
double i1e(double x);
double modified_bessel_k0(double x);
double modified_bessel_k1(double x);
double scaled_modified_bessel_k0(double x);  // exp(x) K0(x)
double scaled_modified_bessel_k1(double x);
double spherical_bessel_j0(double x);  // sin(x) / x

// Of f32 in less time: series as long as its digits need.
float lgamma(float x);
float digamma(float x);
float erfinv(float x);
float erfcx(float x);
float ndtri(float p);
float i0(float x);
float i1(float x);
float i0e(float x);
float i1e(float x);

// Of two.
double zeta(double s, double q);    // sum over k >= 0 of (k + q)^-s
double igamma(double a, double x);  // regularized lower incomplete gamma function
double igammac(double a, double x);
double polygamma(double n, double x);  // derivative n of digamma
float polygamma(float n, float x);     // every step of n = 1 rounded: near poles it is off by that of pi x

// Orthogonal polynomials of a degree that is cut to an integer; 0 for negative ones.
double chebyshev_polynomial_t(double x, double n);
double shifted_chebyshev_polynomial_t(double x, double n);  // of 2x - 1
double chebyshev_polynomial_u(double x, double n);
double shifted_chebyshev_polynomial_u(double x, double n);  // of 2x - 1
double chebyshev_polynomial_v(double x, double n);
double shifted_chebyshev_polynomial_v(double x, double n);  // of 2x - 1
double chebyshev_polynomial_w(double x, double n);
double shifted_chebyshev_polynomial_w(double x, double n);  // of 2x - 1
double hermite_polynomial_h(double x, double n);
double hermite_polynomial_he(double x, double n);
float hermite_polynomial_he(float x, float n);
double laguerre_polynomial_l(double x, double n);
double legendre_polynomial_p(double x, double n);

// The others of f32: as of f64, rounded once.
#define HETNN_ROUNDED(name) \
  inline float name(float x) { return static_cast<float>(name(static_cast<double>(x))); }
#define HETNN_ROUNDED2(name)                                                         \
  inline float name(float a, float b) {                                              \
    return static_cast<float>(name(static_cast<double>(a), static_cast<double>(b))); \
  }
HETNN_ROUNDED(airy_ai)
HETNN_ROUNDED(bessel_j0)
HETNN_ROUNDED(bessel_j1)
HETNN_ROUNDED(bessel_y0)
HETNN_ROUNDED(bessel_y1)
HETNN_ROUNDED(modified_bessel_k0)
HETNN_ROUNDED(modified_bessel_k1)
HETNN_ROUNDED(scaled_modified_bessel_k0)
HETNN_ROUNDED(scaled_modified_bessel_k1)
HETNN_ROUNDED(spherical_bessel_j0)
HETNN_ROUNDED2(zeta)
HETNN_ROUNDED2(igamma)
HETNN_ROUNDED2(igammac)
HETNN_ROUNDED2(chebyshev_polynomial_t)
HETNN_ROUNDED2(chebyshev_polynomial_u)
HETNN_ROUNDED2(chebyshev_polynomial_v)
HETNN_ROUNDED2(chebyshev_polynomial_w)
HETNN_ROUNDED2(shifted_chebyshev_polynomial_t)
HETNN_ROUNDED2(shifted_chebyshev_polynomial_u)
HETNN_ROUNDED2(shifted_chebyshev_polynomial_v)
HETNN_ROUNDED2(shifted_chebyshev_polynomial_w)
HETNN_ROUNDED2(hermite_polynomial_h)
HETNN_ROUNDED2(laguerre_polynomial_l)
HETNN_ROUNDED2(legendre_polynomial_p)
#undef HETNN_ROUNDED
#undef HETNN_ROUNDED2

}  // namespace hetnn::ops::special
