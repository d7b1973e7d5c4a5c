// svd: the singular values of matrices, and bases that go with them.
#include <Eigen/SVD>
#include <limits>

#include "hetnn/ops/linalg/dense.h"
#include "hetnn/ops/linalg/tridiagonal.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  const Dim &rows = x.shape[x.shape.size() - 2], &columns = x.shape[x.shape.size() - 1], inner = min(rows, columns);
  const Dim found = call.flag("vectors") ? inner : Dim(0);
  return {{x.dtype, stacked(x.shape, {rows, found})},
          {x.dtype, stacked(x.shape, {inner})},
          {x.dtype, stacked(x.shape, {found, columns})}};
}

// Of [0 B; B^T 0] the eigenvalues are the singular values of B and their negatives. With two diagonals in B, rows and
// columns that alternate leave three. Where double has twice the digits wanted, B^T B is half as large.
Vector<double> values_of(const Vector<double>& diagonal, const Vector<double>& above, bool squared) {
  const int64_t n = diagonal.size();
  if (squared) {
    Vector<double> squares = diagonal.cwiseAbs2();
    squares.tail(n - 1) += above.cwiseAbs2();
    const Vector<double> found = tridiagonal_eigenvalues(squares, diagonal.head(n - 1).cwiseProduct(above));
    return found.reverse().cwiseMax(0).cwiseSqrt();
  }
  Vector<double> beside(2 * n - 1);
  for (int64_t k = 0; k < 2 * n - 1; ++k) beside[k] = (k % 2 == 0 ? diagonal : above)[k / 2];
  const Vector<double> found = tridiagonal_eigenvalues(Vector<double>::Zero(2 * n), beside);
  return found.tail(std::min(n, found.size())).reverse().cwiseMax(0);
}

// Of a matrix that is not wide.
Vector<double> values_of(const Matrix<double>& a, bool squared) {
  const double scale = scale_of(a);
  const Matrix<double> scaled = a / scale;
  Vector<double> diagonal(a.cols()), above(a.cols() - 1);
  bidiagonalize(scaled.data(), a.rows(), a.cols(), diagonal.data(), above.data());
  return values_of(diagonal, above, squared) * scale;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result u = e.output(0), s = e.output(1), vh = e.output(2);
  const int64_t inner = s.shape.back();
  const bool with_vectors = e.call.flag("vectors");
  if (x.elems() == 0) return;
  const auto refuse = [&](int64_t which) {
    fail(e.call, "svd_c2", text("the singular values of matrix ", which, " are not found by rotations. Scale it."));
  };
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    const Matrix<double> a = read<double>(x, which);
    if (!a.allFinite()) {
      const double none = std::numeric_limits<double>::quiet_NaN();
      write(Vector<double>::Constant(inner, none), s, which);
      if (with_vectors) write(Matrix<double>::Constant(a.rows(), inner, none), u, which);
      if (with_vectors) write(Matrix<double>::Constant(inner, a.cols(), none), vh, which);
    } else if (with_vectors) {
      const Eigen::BDCSVD<Matrix<double>> found(a, Eigen::ComputeThinU | Eigen::ComputeThinV);
      if (found.info() != Eigen::Success) refuse(which);
      write(found.matrixU(), u, which);
      write(found.singularValues(), s, which);
      write(Matrix<double>(found.matrixV().transpose()), vh, which);
    } else {
      const bool wide = a.rows() < a.cols();
      const Vector<double> values = values_of(wide ? Matrix<double>(a.transpose()) : a, x.dtype != DType::f64);
      if (values.size() == 0) refuse(which);
      write(values, s, which);
    }
  }
}

}  // namespace

OpDef define_svd() {
  return {
      .name = "svd",
      .doc =
          "x = U diag(s) V^T with s from large to small. The signs of the vectors are not fixed. Of a matrix with NaN "
          "or infinity all are NaN.",
      .inputs = {{"x", "[...,M,N]"}},
      .attrs = {{"vectors", AttrKind::boolean, true, "whether U and V are found; else they have no columns"}},
      .outputs = {"u", "s", "vh"},
      .traits = static_cast<uint32_t>(Trait::compute),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-4,
      .samples = {"svd(f32[4,3])", "svd(f32[2,3,4])", "svd(f64[2,4,3]) {vectors = false}"}};
}

}  // namespace hetnn::ops
