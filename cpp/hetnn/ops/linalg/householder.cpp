// householder: matrices made upper triangular by reflections, and the reflections.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/linalg/reflections.h"

namespace hetnn::ops {

void reflect(Matrix& m, const Matrix& factors, double tau, int64_t k, int64_t first) {
  if (tau == 0) return;
  for (int64_t column = first; column < m.columns(); ++column) {
    double product = m(k, column);
    for (int64_t row = k + 1; row < m.rows(); ++row) product += factors(row, k) * m(row, column);
    m(k, column) -= tau * product;
    for (int64_t row = k + 1; row < m.rows(); ++row) m(row, column) -= tau * product * factors(row, k);
  }
}

// Each reflection makes its diagonal of the sign that loses no digits.
std::vector<double> reflect_to_upper(Matrix& a) {
  std::vector<double> taus;
  for (int64_t k = 0; k < std::min(a.rows(), a.columns()); ++k) {
    double rest = 0;
    for (int64_t row = k + 1; row < a.rows(); ++row) rest += a(row, k) * a(row, k);
    double tau = 0;
    if (rest > 0) {
      const double alpha = a(k, k), beta = -std::copysign(std::sqrt(alpha * alpha + rest), alpha);
      tau = (beta - alpha) / beta;
      for (int64_t row = k + 1; row < a.rows(); ++row) a(row, k) /= alpha - beta;
      reflect(a, a, tau, k, k + 1);
      a(k, k) = beta;
    }
    taus.push_back(tau);
  }
  return taus;
}

namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  return {x, {x.dtype, stacked(x.shape, {min(x.shape[x.shape.size() - 2], x.shape.back())})}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result factors = e.output(0), taus = e.output(1);
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    Matrix a = Matrix::read(x, which);
    Matrix scales(1, taus.shape.back());
    const std::vector<double> found = reflect_to_upper(a);
    for (size_t k = 0; k < found.size(); ++k) scales(0, static_cast<int64_t>(k)) = found[k];
    a.write(factors, which);
    scales.write(taus, which);
  }
}

}  // namespace

OpDef define_householder() {
  return {.name = "householder",
          .doc =
              "Upper triangular matrices R and, below their diagonals, the vectors v of the reflections I - tau v v^T "
              "that made them, v 1 on the diagonal.",
          .inputs = {{"x", "[...,M,N]"}},
          .outputs = {"factors", "taus"},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"householder(f32[4,3])", "householder(f32[2,3,4])"}};
}

}  // namespace hetnn::ops
