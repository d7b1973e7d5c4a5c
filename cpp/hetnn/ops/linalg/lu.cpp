// lu: the factors of matrices, rows exchanged for the largest pivots.
#include <algorithm>
#include <numeric>
#include <span>

#include "hetnn/ops/linalg/dense.h"
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

// Without exchanges; where a pivot is 0 its column is left as it is.
template <typename T>
void eliminate(Matrix<T>& a) {
  for (int64_t k = 0; k < std::min(a.rows(), a.cols()); ++k) {
    if (a(k, k) == 0) continue;
    const int64_t below = a.rows() - k - 1, behind = a.cols() - k - 1;
    a.col(k).tail(below) /= a(k, k);
    a.bottomRightCorner(below, behind).noalias() -= a.col(k).tail(below) * a.row(k).tail(behind);
  }
}

// The exchanges of rows, one after the other, that bring them into an order.
void write_pivots(std::span<const int64_t> order, std::span<int32_t> pivots) {
  std::vector<int64_t> at(order.size()), place(order.size());
  std::iota(at.begin(), at.end(), 0);
  std::iota(place.begin(), place.end(), 0);
  for (size_t k = 0; k < pivots.size(); ++k) {
    const int64_t from = place[static_cast<size_t>(order[k])];
    pivots[k] = static_cast<int32_t>(from) + 1;
    std::swap(at[k], at[static_cast<size_t>(from)]);
    place[static_cast<size_t>(at[static_cast<size_t>(from)])] = from;
  }
}

// Eigen factors square matrices: tall ones get columns of zeros; for what is right of the square of wide ones it
// solves.
template <typename T>
void eliminate_exchanging(Matrix<T>& a, std::span<int64_t> order) {
  const int64_t rows = a.rows(), columns = a.cols();
  if (columns < rows) {
    a.conservativeResize(Eigen::NoChange, rows);
    a.rightCols(rows - columns).setZero();
  }
  factor_lu(a.data(), rows, order.data());
  if (columns > rows) {
    auto rest = a.rightCols(columns - rows);
    rest = Matrix<T>(rest(order, Eigen::all));
    Matrix<T> lower = a.leftCols(rows);
    lower.diagonal().setOnes();
    solve_triangular(lower.data(), rows, rest.data(), rest.cols(), false);
  }
  a.conservativeResize(Eigen::NoChange, columns);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result factors = e.output(0), pivots = e.output(1), order = e.output(2), broken = e.output(3);
  const auto rows = static_cast<size_t>(order.shape.back()), steps = static_cast<size_t>(pivots.shape.back());
  visit_precision(x.dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t k = 0; k < count_of(x.shape); ++k) {
      const std::span with(order.values<int64_t>() + static_cast<size_t>(k) * rows, rows);
      std::iota(with.begin(), with.end(), 0);
      Matrix<T> a = read<T>(x, k);
      if (!e.call.flag("pivot")) {
        eliminate(a);
      } else if (a.size() > 0) {
        eliminate_exchanging(a, with);
      }
      write_pivots(with, {pivots.values<int32_t>() + static_cast<size_t>(k) * steps, steps});
      int32_t place = 0;
      for (int64_t i = a.diagonal().size() - 1; i >= 0; --i) {
        if (a(i, i) == 0) place = static_cast<int32_t>(i) + 1;
      }
      if (place != 0 && e.call.flag("checked")) {
        fail(e.call, "lu_c2",
             text("matrix ", k, " is singular: pivot ", place, " of its factors is 0. Give one that has an inverse."));
      }
      broken.values<int32_t>()[k] = place;
      write(a, factors, k);
    }
  });
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
