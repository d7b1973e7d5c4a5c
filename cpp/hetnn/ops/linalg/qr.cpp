// qr: an orthogonal and an upper triangular factor of matrices.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  const Dim &rows = x.shape[x.shape.size() - 2], &columns = x.shape[x.shape.size() - 1];
  const Dim inner = call.flag("complete") ? rows : min(rows, columns);
  return {{x.dtype, stacked(x.shape, {rows, inner})}, {x.dtype, stacked(x.shape, {inner, columns})}};
}

// Reflects the columns of m from `first` on: those I - tau v v^T, v 0 above `row`.
void reflect(Matrix& m, const std::vector<double>& v, double tau, int64_t row, int64_t first) {
  for (int64_t column = first; column < m.columns(); ++column) {
    double product = 0;
    for (int64_t k = row; k < m.rows(); ++k) product += v[static_cast<size_t>(k)] * m(k, column);
    for (int64_t k = row; k < m.rows(); ++k) m(k, column) -= tau * product * v[static_cast<size_t>(k)];
  }
}

// Householder: each reflection makes a column's part below the diagonal 0 and its diagonal of the sign that loses no
// digits.
void factor(Matrix a, Matrix& q, Matrix& r) {
  const int64_t steps = std::min(a.rows(), a.columns());
  std::vector<std::vector<double>> vectors;
  std::vector<double> taus;
  for (int64_t k = 0; k < steps; ++k) {
    double rest = 0;
    for (int64_t row = k + 1; row < a.rows(); ++row) rest += a(row, k) * a(row, k);
    std::vector<double> v(static_cast<size_t>(a.rows()), 0);
    double tau = 0;
    if (rest > 0) {
      const double alpha = a(k, k), beta = -std::copysign(std::sqrt(alpha * alpha + rest), alpha);
      tau = (beta - alpha) / beta;
      v[static_cast<size_t>(k)] = 1;
      for (int64_t row = k + 1; row < a.rows(); ++row) v[static_cast<size_t>(row)] = a(row, k) / (alpha - beta);
      reflect(a, v, tau, k, k);
    }
    vectors.push_back(std::move(v));
    taus.push_back(tau);
  }
  for (int64_t row = 0; row < r.rows(); ++row)
    for (int64_t column = row; column < r.columns(); ++column) r(row, column) = a(row, column);
  for (int64_t k = 0; k < q.columns(); ++k) q(k, k) = 1;
  for (int64_t k = steps; k-- > 0;) reflect(q, vectors[static_cast<size_t>(k)], taus[static_cast<size_t>(k)], k, 0);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result q = e.output(0), r = e.output(1);
  for (int64_t k = 0; k < count_of(x.shape); ++k) {
    Matrix orthogonal(q.shape[q.shape.size() - 2], q.shape.back()), upper(r.shape[r.shape.size() - 2], r.shape.back());
    factor(Matrix::read(x, k), orthogonal, upper);
    orthogonal.write(q, k);
    upper.write(r, k);
  }
}

}  // namespace

OpDef define_qr() {
  return {.name = "qr",
          .doc = "x = Q R with orthonormal columns in Q and upper triangular R, by Householder's reflections.",
          .inputs = {{"x", "[...,M,N]"}},
          .attrs = {{"complete", AttrKind::boolean, false, "whether Q is square"}},
          .outputs = {"q", "r"},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"qr(f32[4,3])", "qr(f32[2,3,4]) {complete = true}"}};
}

}  // namespace hetnn::ops
