// Reflections that make matrices upper triangular.
#include "hetnn/ops/linalg/reflections.h"

#include <algorithm>
#include <cmath>

namespace hetnn::ops {
namespace {

// Reflects the columns of m from `first` on by the vector below a(k, k).
void reflect(Matrix& m, const Matrix& a, double tau, int64_t k, int64_t first) {
  for (int64_t column = first; column < m.columns(); ++column) {
    double product = m(k, column);
    for (int64_t row = k + 1; row < m.rows(); ++row) product += a(row, k) * m(row, column);
    m(k, column) -= tau * product;
    for (int64_t row = k + 1; row < m.rows(); ++row) m(row, column) -= tau * product * a(row, k);
  }
}

}  // namespace

std::vector<double> triangularize(Matrix& a) {
  std::vector<double> taus(static_cast<size_t>(std::min(a.rows(), a.columns())), 0);
  for (int64_t k = 0; k < static_cast<int64_t>(taus.size()); ++k) {
    double rest = 0;
    for (int64_t row = k + 1; row < a.rows(); ++row) rest += a(row, k) * a(row, k);
    if (!(rest > 0)) continue;
    const double alpha = a(k, k), beta = -std::copysign(std::sqrt(alpha * alpha + rest), alpha);
    const double tau = (beta - alpha) / beta;
    for (int64_t row = k + 1; row < a.rows(); ++row) a(row, k) /= alpha - beta;
    reflect(a, a, tau, k, k + 1);
    a(k, k) = beta;
    taus[static_cast<size_t>(k)] = tau;
  }
  return taus;
}

void reflect_all(Matrix& m, const Matrix& a, const std::vector<double>& taus) {
  for (size_t k = taus.size(); k-- > 0;) reflect(m, a, taus[k], static_cast<int64_t>(k), 0);
}

}  // namespace hetnn::ops
