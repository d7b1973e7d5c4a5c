// lu: the factors of matrices, rows exchanged for the largest pivots.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  const Dim &rows = x.shape[x.shape.size() - 2], &columns = x.shape[x.shape.size() - 1];
  return {x,
          {DType::i32, stacked(x.shape, {min(rows, columns)})},
          {DType::i64, stacked(x.shape, {rows})},
          {DType::i32, stacked(x.shape, {})}};
}

// Where a pivot is 0 its column is left as it is; the first such counts from 1.
int32_t factor(Matrix& a, bool pivot, int32_t* pivots, int64_t* order) {
  std::iota(order, order + a.rows(), 0);
  int32_t broken = 0;
  for (int64_t k = 0; k < std::min(a.rows(), a.columns()); ++k) {
    int64_t best = k;
    for (int64_t row = k + 1; pivot && row < a.rows(); ++row) {
      if (std::abs(a(row, k)) > std::abs(a(best, k))) best = row;
    }
    pivots[k] = static_cast<int32_t>(best) + 1;
    if (best != k) {
      for (int64_t column = 0; column < a.columns(); ++column) std::swap(a(k, column), a(best, column));
      std::swap(order[k], order[best]);
    }
    if (a(k, k) == 0) {
      if (broken == 0) broken = static_cast<int32_t>(k) + 1;
      continue;
    }
    for (int64_t row = k + 1; row < a.rows(); ++row) {
      const double ratio = a(row, k) /= a(k, k);
      for (int64_t column = k + 1; column < a.columns(); ++column) a(row, column) -= ratio * a(k, column);
    }
  }
  return broken;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result factors = e.output(0), pivots = e.output(1), order = e.output(2), broken = e.output(3);
  const int64_t rows = factors.shape[factors.shape.size() - 2], steps = pivots.shape.back();
  for (int64_t k = 0; k < count_of(x.shape); ++k) {
    Matrix a = Matrix::read(x, k);
    const int32_t place =
        factor(a, e.call.flag("pivot"), pivots.values<int32_t>() + k * steps, order.values<int64_t>() + k * rows);
    if (place != 0 && e.call.flag("checked")) {
      fail(e.call, "lu_c2",
           text("matrix ", k, " is singular: pivot ", place, " of its factors is 0. Give one that has an inverse."));
    }
    broken.values<int32_t>()[k] = place;
    a.write(factors, k);
  }
}

}  // namespace

OpDef define_lu() {
  return {.name = "lu",
          .doc =
              "Factors of matrices by Gauss: below the diagonal L (ones on it), above U; pivots: the row, from 1, that "
              "each was exchanged with; order: the rows of x that the rows of L U are; broken: the first pivot that is "
              "0, from 1, or 0.",
          .inputs = {{"x", "[...,M,N]"}},
          .attrs = {{"pivot", AttrKind::boolean, true, "whether rows are exchanged for the largest pivot"},
                    {"checked", AttrKind::boolean, false, "whether a pivot that is 0 ends the run"}},
          .outputs = {"factors", "pivots", "order", "broken"},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"lu(f32[3,3])", "lu(f32[2,4,3])"}};
}

}  // namespace hetnn::ops
