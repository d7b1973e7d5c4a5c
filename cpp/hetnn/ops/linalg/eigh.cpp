// eigh: the eigenvalues of symmetric matrices, and an orthonormal basis that goes with them.
#include <Eigen/Eigenvalues>
#include <limits>

#include "hetnn/ops/linalg/tridiagonal.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_square(call);
  const Type& x = call.input(0);
  const Dim &n = x.shape.back(), found = call.flag("vectors") ? n : Dim(0);
  return {{x.dtype, stacked(x.shape, {n})}, {x.dtype, stacked(x.shape, {n, found})}};
}

// Of the half below the diagonal.
template <typename T>
Vector<double> values_of(const Matrix<T>& a) {
  if (a.rows() == 1) return a.template cast<double>();
  const T scale = scale_of<T>(a.template triangularView<Eigen::Lower>());
  const Eigen::Tridiagonalization<Matrix<T>> three(a / scale);
  const Vector<double> found =
      tridiagonal_eigenvalues(three.diagonal().template cast<double>(), three.subDiagonal().template cast<double>());
  return found * static_cast<double>(scale);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result values = e.output(0), vectors = e.output(1);
  const bool lower = e.call.flag("lower"), with_vectors = e.call.flag("vectors");
  if (x.elems() == 0) return;
  const auto refuse = [&](int64_t which) {
    fail(e.call, "eigh_c3", text("the eigenvalues of matrix ", which, " are not found by rotations. Scale it."));
  };
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    Matrix<double> a = read<double>(x, which);
    if (!lower) a.transposeInPlace();
    if (!Matrix<double>(a.triangularView<Eigen::Lower>()).allFinite()) {
      const double none = std::numeric_limits<double>::quiet_NaN();
      write(Vector<double>::Constant(a.rows(), none), values, which);
      if (with_vectors) write(Matrix<double>::Constant(a.rows(), a.rows(), none), vectors, which);
    } else if (with_vectors) {
      const Eigen::SelfAdjointEigenSolver<Matrix<double>> found(a);
      if (found.info() != Eigen::Success) refuse(which);
      write(found.eigenvalues(), values, which);
      write(found.eigenvectors(), vectors, which);
    } else {
      visit_precision(x.dtype, [&](auto t) {
        const Vector<double> found = values_of<decltype(t)>(a.cast<decltype(t)>());
        if (found.size() == 0) refuse(which);
        write(found, values, which);
      });
    }
  }
}

}  // namespace

OpDef define_eigh() {
  return {.name = "eigh",
          .doc =
              "x = V diag(w) V^T for symmetric x, of which one half is read: w from small to large, the vectors in the "
              "columns of V, whose signs are not fixed. Of a matrix with NaN or infinity all are NaN.",
          .inputs = {{"x", "[...,N,N]"}},
          .attrs = {{"lower", AttrKind::boolean, true, "whether the half below the diagonal is read"},
                    {"vectors", AttrKind::boolean, true, "whether V is found; else it has no columns"}},
          .outputs = {"w", "v"},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"eigh(f32[3,3] {2, 1, 0, 1, 3, 1, 0, 1, 5})", "eigh(f32[2,1,1])",
                      "eigh(f32[2,3,3]) {vectors = false}"}};
}

}  // namespace hetnn::ops
