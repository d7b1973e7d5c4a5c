// eigh: the eigenvalues of symmetric matrices, and an orthonormal basis that goes with them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_square(call);
  const Type& x = call.input(0);
  return {{x.dtype, stacked(x.shape, {x.shape.back()})}, x};
}

// Cyclic Jacobi: rotations of rows and columns that make one pair of elements 0 each, until all beside the diagonal
// are; `basis` collects them in its columns.
void diagonalize(Matrix& a, Matrix& basis) {
  const int64_t n = a.rows();
  for (int64_t k = 0; k < n; ++k) basis(k, k) = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double size = std::sqrt(std::abs(a(p, p))) * std::sqrt(std::abs(a(q, q)));
        constexpr double kTiny = std::numeric_limits<double>::min();
        if (!(std::abs(a(p, q)) > std::max(std::numeric_limits<double>::epsilon() / 8 * size, kTiny))) continue;
        turned = true;
        const double zeta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        const double t = std::copysign(1, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        const auto turn = [c, s](double& left, double& right) {
          const double l = left, r = right;
          left = c * l - s * r;
          right = s * l + c * r;
        };
        for (int64_t k = 0; k < n; ++k) turn(a(k, p), a(k, q));
        for (int64_t k = 0; k < n; ++k) turn(a(p, k), a(q, k));
        for (int64_t k = 0; k < n; ++k) turn(basis(k, p), basis(k, q));
      }
    }
    if (!turned) break;
  }
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result values = e.output(0), vectors = e.output(1);
  const bool lower = e.call.flag("lower");
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    Matrix a = Matrix::read(x, which);
    const int64_t n = a.rows();
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = row + 1; column < n; ++column)
        (lower ? a(row, column) : a(column, row)) = lower ? a(column, row) : a(row, column);
    Matrix basis(n, n), sorted(n, n), diagonal(1, n);
    diagonalize(a, basis);
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t p, int64_t q) { return a(p, p) < a(q, q); });
    for (int64_t k = 0; k < n; ++k) {
      const int64_t from = order[static_cast<size_t>(k)];
      diagonal(0, k) = a(from, from);
      for (int64_t row = 0; row < n; ++row) sorted(row, k) = basis(row, from);
    }
    diagonal.write(values, which);
    sorted.write(vectors, which);
  }
}

}  // namespace

OpDef define_eigh() {
  return {.name = "eigh",
          .doc =
              "x = V diag(w) V^T for symmetric x, of which one half is read: w from small to large, the vectors in the "
              "columns of V. The signs of the vectors are not fixed.",
          .inputs = {{"x", "[...,N,N]"}},
          .attrs = {{"lower", AttrKind::boolean, true, "whether the half below the diagonal is read"}},
          .outputs = {"w", "v"},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"eigh(f32[3,3] {2, 1, 0, 1, 3, 1, 0, 1, 5})", "eigh(f32[2,1,1])"}};
}

}  // namespace hetnn::ops
