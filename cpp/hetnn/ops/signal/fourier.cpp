// Transforms split by the factors of their length, decimated in frequency (Gentleman and Sande, 1966).
#include "hetnn/ops/signal/fourier.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace hetnn::ops {
namespace {

size_t smallest_factor(size_t n) {
  for (size_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// By its parts: the operator of std::complex looks for infinities.
template <typename Real>
std::complex<Real> product(std::complex<Real> a, std::complex<Real> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename Real>
class Transform {
 public:
  using Complex = std::complex<Real>;

  Transform(size_t size, bool inverse) : roots_(size), y_(size) {
    const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(size);
    for (size_t k = 0; k < size; ++k) roots_[k] = Complex(std::polar(1.0, step * static_cast<double>(k)));
  }

  // Writes the frequencies of x to y[first], y[first + stride], …; x is used up.
  void run(std::vector<Complex> x, size_t first, size_t stride) {
    const size_t n = x.size();
    if (n <= 1) {
      if (n == 1) y_[first] = x[0];
      return;
    }
    const size_t p = smallest_factor(n), m = n / p;
    std::vector<std::vector<Complex>> rows(p, std::vector<Complex>(m));
    std::vector<Complex> in(p), out(p);
    for (size_t j = 0; j < m; ++j) {
      for (size_t q = 0; q < p; ++q) in[q] = x[j + m * q];
      butterfly(in, out);
      for (size_t q = 0; q < p; ++q) rows[q][j] = j * q == 0 ? out[q] : product(out[q], root(j * q, n));
    }
    x.clear();
    x.shrink_to_fit();
    for (size_t q = 0; q < p; ++q) run(std::move(rows[q]), first + q * stride, stride * p);
  }

  std::vector<Complex> take() { return std::move(y_); }

 private:
  // exp(∓2πi k / n), of an n that divides the length.
  Complex root(size_t k, size_t n) const { return roots_[k % n * (roots_.size() / n)]; }

  // The transform of p numbers, 2 or odd: pairs j and p - j have sums and differences in common.
  void butterfly(const std::vector<Complex>& x, std::vector<Complex>& y) const {
    const size_t p = x.size();
    if (p == 2) {
      y[0] = x[0] + x[1];
      y[1] = x[0] - x[1];
      return;
    }
    y[0] = x[0];
    for (size_t j = 1; j <= p / 2; ++j) y[0] += x[j] + x[p - j];
    for (size_t k = 1; k <= p / 2; ++k) {
      Complex even = x[0], odd;
      for (size_t j = 1; j <= p / 2; ++j) {
        const Complex turn = root(j * k, p);
        even += turn.real() * (x[j] + x[p - j]);
        odd += turn.imag() * (x[j] - x[p - j]);
      }
      y[k] = {even.real() - odd.imag(), even.imag() + odd.real()};
      y[p - k] = {even.real() + odd.imag(), even.imag() - odd.real()};
    }
  }

  std::vector<Complex> roots_, y_;
};

}  // namespace

template <typename Real>
std::vector<std::complex<Real>> fourier(const std::vector<std::complex<Real>>& x, bool inverse) {
  Transform<Real> transform(x.size(), inverse);
  transform.run(x, 0, 1);
  return transform.take();
}

std::optional<double> fourier_scale(std::string_view norm, bool inverse, int64_t length) {
  if (norm != "backward" && norm != "forward" && norm != "ortho") return std::nullopt;
  const auto elements = static_cast<double>(length);
  if (norm == "ortho") return 1 / std::sqrt(elements);
  return (norm == "backward") == inverse ? 1 / elements : 1;
}

template std::vector<std::complex<float>> fourier(const std::vector<std::complex<float>>&, bool);
template std::vector<std::complex<double>> fourier(const std::vector<std::complex<double>>&, bool);

}  // namespace hetnn::ops
