// qr: an orthogonal and an upper triangular factor of matrices.
#include <Eigen/QR>

#include "hetnn/ops/linalg/reflections.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  const Dim &rows = x.shape[x.shape.size() - 2], &columns = x.shape[x.shape.size() - 1];
  const Dim inner = call.flag("complete") ? rows : min(rows, columns);
  return {{x.dtype, stacked(x.shape, {rows, inner})}, {x.dtype, stacked(x.shape, {inner, columns})}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result q = e.output(0), r = e.output(1);
  const int64_t rows = x.shape[x.shape.size() - 2], inner = q.shape.back();
  visit_precision(x.dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t which = 0; which < count_of(x.shape); ++which) {
      Matrix<T> a = read<T>(x, which);
      const T scale = scale_of(a);
      a /= scale;
      Matrix<T> basis = Matrix<T>::Identity(rows, inner);
      if (a.size() > 0) {
        Eigen::Ref<Matrix<T>> factors = a;
        const Eigen::HouseholderQR<Eigen::Ref<Matrix<T>>> qr(factors);
        reflect<T>(a, qr.hCoeffs(), false, basis, rows == inner);
      }
      write(basis, q, which);
      write(Matrix<T>(a.topRows(inner).template triangularView<Eigen::Upper>()) * scale, r, which);
    }
  });
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
