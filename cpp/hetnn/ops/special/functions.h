// Functions of one or two reals that have no name in C++, and some that have, in double.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

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

/// A function that a call names: of f32 by `single` where it has one, else as of f64, rounded once.
struct Unary {
  double (*function)(double);
  float (*single)(float);

  double of(double x) const { return function(x); }
  float of(float x) const { return single ? single(x) : static_cast<float>(function(static_cast<double>(x))); }
};
struct Binary {
  double (*function)(double, double);
  float (*single)(float, float);

  double of(double a, double b) const { return function(a, b); }
  float of(float a, float b) const {
    return single ? single(a, b) : static_cast<float>(function(static_cast<double>(a), static_cast<double>(b)));
  }
};
/// Those of the operators `special` and `special_binary`; nullopt of other names.
std::optional<Unary> unary_named(std::string_view name);
std::optional<Binary> binary_named(std::string_view name);

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
double modified_bessel_i0(double x);
double modified_bessel_i1(double x);
double scaled_modified_bessel_i0(double x);  // exp(-|x|) I0(x)
double scaled_modified_bessel_i1(double x);
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
float modified_bessel_i0(float x);
float modified_bessel_i1(float x);
float scaled_modified_bessel_i0(float x);
float scaled_modified_bessel_i1(float x);

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
