// ldl: the factors of symmetric matrices, rows and columns exchanged by Bunch and Kaufman's rule.
#include <algorithm>
#include <cmath>
#include <utility>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

// The share of a column's largest element that a pivot of its own must have, so that elements grow least.
const double kShare = (1 + std::sqrt(17.0)) / 8;

std::vector<Type> infer(const Call& call) {
  check_square(call);
  const Type& x = call.input(0);
  return {x, {DType::i32, stacked(x.shape, {x.shape.back()})}, {DType::i32, stacked(x.shape, {})}};
}

// Of what lies below the diagonal.
double& at(Matrix<double>& a, int64_t i, int64_t j) { return i >= j ? a(i, j) : a(j, i); }

// The row that comes to `k`, or to `k` + 1 where the block that is taken out has two.
std::pair<int64_t, int64_t> pivot_of(Matrix<double>& a, int64_t k) {
  const int64_t n = a.rows();
  int64_t largest = k;
  double column = 0;
  for (int64_t i = k + 1; i < n; ++i) {
    if (std::abs(a(i, k)) > column) column = std::abs(a(largest = i, k));
  }
  const double own = std::abs(a(k, k));
  if (!(own < kShare * column)) return {k, 1};  // no number has no other one to be exchanged with
  double row = 0;
  for (int64_t j = k; j < n; ++j) {
    if (j != largest) row = std::max(row, std::abs(at(a, largest, j)));
  }
  if (own >= kShare * column * (column / row)) return {k, 1};
  return {largest, std::abs(a(largest, largest)) >= kShare * row ? 1 : 2};
}

// Of the rows and columns from `k` on.
void exchange(Matrix<double>& a, int64_t k, int64_t one, int64_t other) {
  if (one == other) return;
  for (int64_t j = k; j < a.rows(); ++j) {
    if (j != one && j != other) std::swap(at(a, one, j), at(a, other, j));
  }
  std::swap(a(one, one), a(other, other));
}

void take_one(Matrix<double>& a, int64_t k) {
  for (int64_t j = k + 1; j < a.rows(); ++j) {
    const double ratio = a(j, k) / a(k, k);
    for (int64_t i = j; i < a.rows(); ++i) a(i, j) -= ratio * a(i, k);
  }
  for (int64_t i = k + 1; i < a.rows(); ++i) a(i, k) /= a(k, k);
}

void take_two(Matrix<double>& a, int64_t k) {
  const double off = a(k + 1, k), first = a(k + 1, k + 1) / off, second = a(k, k) / off;
  const double scale = 1 / (first * second - 1) / off;
  for (int64_t j = k + 2; j < a.rows(); ++j) {
    const double x = scale * (first * a(j, k) - a(j, k + 1)), y = scale * (second * a(j, k + 1) - a(j, k));
    for (int64_t i = j; i < a.rows(); ++i) a(i, j) -= a(i, k) * x + a(i, k + 1) * y;
    a(j, k) = x;
    a(j, k + 1) = y;
  }
}

// The first pivot that is 0 or no number, from 1; or 0.
int32_t factor(Matrix<double>& a, int32_t* pivots) {
  int32_t broken = 0;
  for (int64_t k = 0, size = 1; k < a.rows(); k += size) {
    auto [row, count] = pivot_of(a, k);
    size = count;
    exchange(a, k, k + size - 1, row);
    if (size == 2) {
      take_two(a, k);
      pivots[k] = pivots[k + 1] = -static_cast<int32_t>(row) - 1;
      continue;
    }
    pivots[k] = static_cast<int32_t>(row) + 1;
    if (a(k, k) != 0 && !std::isnan(a(k, k))) {
      take_one(a, k);
    } else if (broken == 0) {
      broken = static_cast<int32_t>(k) + 1;
    }
  }
  return broken;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result factors = e.output(0), pivots = e.output(1), broken = e.output(2);
  const int64_t n = pivots.shape.back();
  for (int64_t which = 0; which < count_of(x.shape); ++which) {
    Matrix<double> a = read<double>(x, which);
    a.triangularView<Eigen::StrictlyUpper>().setZero();
    broken.values<int32_t>()[which] = factor(a, pivots.values<int32_t>() + which * n);
    if (broken.values<int32_t>()[which] != 0 && e.call.flag("checked"))
      fail(e.call, "ldl_c3",
           text("matrix ", which, " has a block of 0, or of no number, among its factors. Give one that is regular."));
    write(a, factors, which);
  }
}

}  // namespace

OpDef define_ldl() {
  return {.name = "ldl",
          .doc =
              "Symmetric matrices, whose lower halves are read, as P L D L^T P^T: below the diagonal L, on it D, whose "
              "blocks have one or two rows. pivots: the row, from 1, that each was exchanged with; of a block of two, "
              "both have the second row's, negative. broken: the first block that is 0 or no number, from 1, or 0.",
          .inputs = {{"x", "[...,N,N]"}},
          .attrs = {{"checked", AttrKind::boolean, false, "whether a block of 0 ends the run"}},
          .outputs = {"factors", "pivots", "broken"},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"ldl(f32[4,4])", "ldl(f32[2,3,3])"}};
}

}  // namespace hetnn::ops
