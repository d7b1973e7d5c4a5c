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

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result q = e.output(0), r = e.output(1);
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    Matrix orthogonal(q.shape[q.shape.size() - 2], q.shape.back()), upper(r.shape[r.shape.size() - 2], r.shape.back());
    Matrix a = Matrix::read(x, which);
    const std::vector<double> taus = triangularize(a);
    for (int64_t row = 0; row < upper.rows(); ++row)
      for (int64_t column = row; column < upper.columns(); ++column) upper(row, column) = a(row, column);
    for (int64_t k = 0; k < orthogonal.columns(); ++k) orthogonal(k, k) = 1;
    reflect_all(orthogonal, a, taus);
    orthogonal.write(q, which);
    upper.write(r, which);
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
