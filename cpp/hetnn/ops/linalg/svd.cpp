// svd: the singular values of matrices, and bases that go with them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  const Dim &rows = x.shape[x.shape.size() - 2], &columns = x.shape[x.shape.size() - 1], inner = min(rows, columns);
  return {{x.dtype, stacked(x.shape, {rows, inner})},
          {x.dtype, stacked(x.shape, {inner})},
          {x.dtype, stacked(x.shape, {inner, columns})}};
}

// Turns two columns of m by a rotation.
void rotate(Matrix& m, int64_t p, int64_t q, double c, double s) {
  for (int64_t k = 0; k < m.rows(); ++k) {
    const double left = m(k, p), right = m(k, q);
    m(k, p) = c * left - s * right;
    m(k, q) = s * left + c * right;
  }
}

// One-sided Jacobi (Hestenes): rotations of pairs of columns until all are orthogonal; their lengths are the singular
// values, and v collects the rotations: a of more rows than columns becomes U S.
void orthogonalize(Matrix& a, Matrix& v) {
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  for (int64_t k = 0; k < v.rows(); ++k) v(k, k) = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p + 1 < a.columns(); ++p) {
      for (int64_t q = p + 1; q < a.columns(); ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t k = 0; k < a.rows(); ++k) {
          pp += a(k, p) * a(k, p);
          qq += a(k, q) * a(k, q);
          pq += a(k, p) * a(k, q);
        }
        if (!(std::abs(pq) > kEps * std::sqrt(pp * qq))) continue;
        turned = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = std::copysign(1, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t);
        rotate(a, p, q, c, c * t);
        rotate(v, p, q, c, c * t);
      }
    }
    if (!turned) break;
  }
}

Matrix transposed(const Matrix& m) {
  Matrix out(m.columns(), m.rows());
  for (int64_t row = 0; row < m.rows(); ++row)
    for (int64_t column = 0; column < m.columns(); ++column) out(column, row) = m(row, column);
  return out;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result u = e.output(0), s = e.output(1), vh = e.output(2);
  const int64_t rows = u.shape[u.shape.size() - 2], columns = vh.shape.back(), inner = s.shape.back();
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    // The taller of the matrix and its transpose.
    const Matrix given = Matrix::read(x, which);
    const bool tall = rows >= columns;
    Matrix a = tall ? given : transposed(given), v(inner, inner);
    orthogonalize(a, v);
    std::vector<double> lengths(static_cast<size_t>(inner), 0);
    for (int64_t k = 0; k < inner; ++k) {
      double square = 0;
      for (int64_t row = 0; row < a.rows(); ++row) square += a(row, k) * a(row, k);
      lengths[static_cast<size_t>(k)] = std::sqrt(square);
    }
    std::vector<int64_t> order(lengths.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, [&](int64_t p, int64_t q) { return lengths[static_cast<size_t>(p)] > lengths[static_cast<size_t>(q)]; });
    Matrix left(rows, inner), right(inner, columns), sizes(1, inner);
    for (int64_t k = 0; k < inner; ++k) {
      const int64_t from = order[static_cast<size_t>(k)];
      const double length = lengths[static_cast<size_t>(from)];
      sizes(0, k) = length;
      const auto unit = [&](int64_t row) { return length > 0 ? a(row, from) / length : 0; };
      for (int64_t row = 0; row < rows; ++row) left(row, k) = tall ? unit(row) : v(row, from);
      for (int64_t column = 0; column < columns; ++column) right(k, column) = tall ? v(column, from) : unit(column);
    }
    left.write(u, which);
    sizes.write(s, which);
    right.write(vh, which);
  }
}

}  // namespace

OpDef define_svd() {
  return {
      .name = "svd",
      .doc =
          "x = U diag(s) V^T with s from large to small; of a singular value 0 the vector in the longer basis is 0. "
          "The signs of the vectors are not fixed.",
      .inputs = {{"x", "[...,M,N]"}},
      .outputs = {"u", "s", "vh"},
      .traits = static_cast<uint32_t>(Trait::compute),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-4,
      .samples = {"svd(f32[4,3])", "svd(f32[2,3,4])"}};
}

}  // namespace hetnn::ops
