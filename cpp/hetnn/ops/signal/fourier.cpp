// Transforms split by the factors of their length (Cooley and Tukey, 1965).
#include "hetnn/ops/signal/fourier.h"

#include <cstddef>
#include <numbers>

namespace hetnn::ops {
namespace {

using Complex = std::complex<double>;

size_t smallest_factor(size_t n) {
  for (size_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// Of x[0], x[stride], …, n of them, into y[0 … n); roots[k] = exp(∓2πi k / N) of the whole length N.
void transform(const Complex* x, size_t stride, size_t n, const std::vector<Complex>& roots, Complex* y) {
  if (n <= 1) {
    if (n == 1) y[0] = x[0];
    return;
  }
  const size_t p = smallest_factor(n), m = n / p, turn = roots.size() / n;
  std::vector<Complex> parts(n);
  for (size_t k = 0; k < p; ++k) transform(x + k * stride, stride * p, m, roots, parts.data() + k * m);
  for (size_t at = 0; at < n; ++at) {
    Complex sum = parts[at % m];
    for (size_t k = 1; k < p; ++k) sum += parts[k * m + at % m] * roots[at * k % n * turn];
    y[at] = sum;
  }
}

}  // namespace

std::vector<Complex> fourier(const std::vector<Complex>& x, bool inverse) {
  std::vector<Complex> roots(x.size()), y(x.size());
  const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(x.size());
  for (size_t k = 0; k < roots.size(); ++k) roots[k] = std::polar(1.0, step * static_cast<double>(k));
  transform(x.data(), 1, x.size(), roots, y.data());
  return y;
}

}  // namespace hetnn::ops
