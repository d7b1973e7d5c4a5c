// cholesky: the lower factor of positive definite matrices.
#include <Eigen/Cholesky>
#include <cmath>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_square(call);
  const Type& x = call.input(0);
  return {x, {DType::i32, stacked(x.shape, {})}};
}

// Column by column; the order of the first minor that is not positive, behind whose columns none is factored, else 0.
template <typename T>
int32_t factor_columns(const Matrix<T>& a, Matrix<T>& lower) {
  lower.setZero();
  for (int64_t k = 0; k < a.rows(); ++k) {
    const int64_t below = a.rows() - k - 1;
    const T square = a(k, k) - lower.row(k).head(k).squaredNorm();
    if (!(square > 0)) return static_cast<int32_t>(k) + 1;
    lower(k, k) = std::sqrt(square);
    lower.col(k).tail(below) = a.col(k).tail(below);
    lower.col(k).tail(below).noalias() -= lower.bottomLeftCorner(below, k) * lower.row(k).head(k).transpose();
    lower.col(k).tail(below) /= lower(k, k);
  }
  return 0;
}

template <typename T>
int32_t factor(const Matrix<T>& a, Matrix<T>& lower) {
  const Eigen::LLT<Matrix<T>> llt(a);
  lower = llt.matrixL();
  if (llt.info() == Eigen::Success && (lower.diagonal().array() > 0).all()) return 0;
  return factor_columns(a, lower);  // Eigen does not say where it ended
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output(0), broken = e.output(1);
  visit_precision(x.dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t k = 0; k < count_of(x.shape); ++k) {
      const Matrix<T> a = read<T>(x, k);
      Matrix<T> lower(a.rows(), a.rows());
      const int32_t order = factor(a, lower);
      if (order != 0 && e.call.flag("checked")) {
        fail(e.call, "cholesky_c2",
             text("matrix ", k, " is not positive definite: its minor of order ", order,
                  " is not positive. Give one that is, or add a little to its diagonal."));
      }
      broken.values<int32_t>()[k] = order;
      write(lower, y, k);
    }
  });
}

}  // namespace

OpDef define_cholesky() {
  return {
      .name = "cholesky",
      .doc =
          "L of x = L L^T, from the lower half of x; broken: the order of the first minor that is not positive, or 0.",
      .inputs = {{"x", "[...,N,N], symmetric and positive definite"}},
      .attrs = {{"checked", AttrKind::boolean, false, "whether a matrix without factors ends the run"}},
      .outputs = {"y", "broken"},
      .traits = static_cast<uint32_t>(Trait::compute),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-4,
      .samples = {"cholesky(f32[2,2])"}};
}

}  // namespace hetnn::ops
