// Functions of one or two reals that have no name in C++, and some that have, in double.
#pragma once

#include <algorithm>
#include <span>

#include "hetnn/ops/infer.h"

namespace hetnn::ops::special {

/// The row of a call's attribute `function`; `label` is the constraint that there is one.
template <typename Row>
const Row& row_of(const Call& call, std::span<const Row> rows, std::string_view label) {
  const auto at = std::ranges::find(rows, call.string("function"), &Row::name);
  if (at == rows.end())
    fail(call, label, text("there is no function '", call.string("function"), "'. See docs/operators.md."));
  return *at;
}

// Of one number. Outside their domain: NaN.
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
double modified_bessel_i0(double x);
double modified_bessel_i1(double x);
double scaled_modified_bessel_i0(double x);  // exp(-|x|) I0(x)
double scaled_modified_bessel_i1(double x);
double modified_bessel_k0(double x);
double modified_bessel_k1(double x);
double scaled_modified_bessel_k0(double x);  // exp(x) K0(x)
double scaled_modified_bessel_k1(double x);
double spherical_bessel_j0(double x);  // sin(x) / x

// Of two.
double zeta(double s, double q);    // sum over k >= 0 of (k + q)^-s
double igamma(double a, double x);  // regularized lower incomplete gamma function
double igammac(double a, double x);
double polygamma(double n, double x);   // derivative n of digamma
float polygamma_f32(float n, float x);  // every step of n = 1 rounded: near poles it is off by that of pi x

// Orthogonal polynomials of a degree that is cut to an integer; 0 for negative ones.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
float hermite_he_f32(float x, float n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace hetnn::ops::special
