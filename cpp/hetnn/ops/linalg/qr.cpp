// qr: an orthogonal and an upper triangular factor of matrices.
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

void factor(Matrix a, Matrix& q, Matrix& r) {
  const std::vector<double> taus = reflect_to_upper(a);
  for (int64_t row = 0; row < r.rows(); ++row)
    for (int64_t column = row; column < r.columns(); ++column) r(row, column) = a(row, column);
  for (int64_t k = 0; k < q.columns(); ++k) q(k, k) = 1;
  for (auto k = static_cast<int64_t>(taus.size()); k-- > 0;) reflect(q, a, taus[static_cast<size_t>(k)], k, 0);
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
