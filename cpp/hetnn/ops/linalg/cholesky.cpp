// cholesky: the lower factor of positive definite matrices.
#include <cmath>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_square(call);
  const Type& x = call.input(0);
  return {x, {DType::i32, stacked(x.shape, {})}};
}

// Of the lower half of a; the order of the first minor that is not positive, else 0.
int32_t factor(const Matrix& a, Matrix& lower) {
  for (int64_t column = 0; column < a.rows(); ++column) {
    double square = a(column, column);
    for (int64_t k = 0; k < column; ++k) square -= lower(column, k) * lower(column, k);
    if (!(square > 0)) return static_cast<int32_t>(column) + 1;
    lower(column, column) = std::sqrt(square);
    for (int64_t row = column + 1; row < a.rows(); ++row) {
      double value = a(row, column);
      for (int64_t k = 0; k < column; ++k) value -= lower(row, k) * lower(column, k);
      lower(row, column) = value / lower(column, column);
    }
  }
  return 0;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output(0), broken = e.output(1);
  for (int64_t k = 0; k < count_of(x.shape); ++k) {
    const Matrix a = Matrix::read(x, k);
    Matrix lower(a.rows(), a.rows());
    const int32_t order = factor(a, lower);
    if (order != 0 && e.call.flag("checked")) {
      fail(e.call, "cholesky_c2",
           text("matrix ", k, " is not positive definite: its minor of order ", order,
                " is not positive. Give one that is, or add a little to its diagonal."));
    }
    broken.values<int32_t>()[k] = order;
    lower.write(y, k);
  }
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
