// ldl_solve: linear systems whose symmetric matrices are given by the factors of ldl.
#include <cstdlib>
#include <utility>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_square(call);
  check_matrices(call, 2);
  const Type &a = call.input(0), &pivots = call.input(1), &b = call.input(2);
  const Shape want = stacked(a.shape, {a.shape.back()});
  if (pivots.dtype != DType::i32 || pivots.shape != want || a.dtype != b.dtype ||
      stacked(b.shape, {b.shape[b.shape.size() - 2]}) != want) {
    fail(call, "ldl_solve_c3",
         text("it takes factors [...,N,N], pivots i32[...,N] and b [...,N,K] of one type; got ", to_string(a), ", ",
              to_string(pivots), " and ", to_string(b), "."));
  }
  return {b};
}

class System {
 public:
  System(const Evaluation& e, int64_t which)
      : e_(e),
        a_(read<double>(e.input(0), which)),
        pivots_(e.input(1).values<int32_t>().subspan(static_cast<size_t>(which * a_.rows()))) {}

  // x of P L D L^T P^T x = b, in b's place.
  void solve(Matrix<double>& b) const {
    for (int64_t k = 0; k < a_.rows(); k += size_at(k)) {
      exchange(b, k + size_at(k) - 1, row_of(k));
      for (int64_t j = k; j < k + size_at(k); ++j) take_out(b, j, k + size_at(k));
      divide(b, k);
    }
    for (int64_t k = a_.rows() - 1; k >= 0;) {
      const int64_t size = pivot(k) > 0 ? 1 : 2, first = k - size + 1;
      if (first < 0) refuse(k);
      for (int64_t j = first; j <= k; ++j) take_in(b, j, k + 1);
      exchange(b, k, row_of(k));
      k -= size;
    }
  }

 private:
  int32_t pivot(int64_t k) const { return pivots_[static_cast<size_t>(k)]; }
  int64_t row_of(int64_t k) const { return std::abs(static_cast<int64_t>(pivot(k))) - 1; }
  int64_t size_at(int64_t k) const {
    const int64_t row = row_of(k);
    if (row < 0 || row >= a_.rows() || (pivot(k) < 0 && (k + 1 == a_.rows() || pivot(k + 1) != pivot(k)))) refuse(k);
    return pivot(k) > 0 ? 1 : 2;
  }
  [[noreturn]] void refuse(int64_t k) const {
    fail(e_.call, "ldl_solve_c4",
         text("a pivot must be in [1,", a_.rows(), "], or twice one below 0; got ", pivot(k), " at ", k, "."));
  }

  static void exchange(Matrix<double>& b, int64_t one, int64_t other) { b.row(one).swap(b.row(other)); }
  void take_out(Matrix<double>& b, int64_t j, int64_t from) const {
    for (int64_t i = from; i < a_.rows(); ++i)
      for (int64_t c = 0; c < b.cols(); ++c) b(i, c) -= a_(i, j) * b(j, c);
  }
  void take_in(Matrix<double>& b, int64_t j, int64_t from) const {
    for (int64_t i = from; i < a_.rows(); ++i)
      for (int64_t c = 0; c < b.cols(); ++c) b(j, c) -= a_(i, j) * b(i, c);
  }
  void divide(Matrix<double>& b, int64_t k) const {
    const double off = size_at(k) == 2 ? a_(k + 1, k) : 0;
    for (int64_t c = 0; c < b.cols(); ++c) {
      if (size_at(k) == 1) {
        b(k, c) /= a_(k, k);
        continue;
      }
      const double first = a_(k, k) / off, second = a_(k + 1, k + 1) / off, scale = first * second - 1;
      const double x = b(k, c) / off, y = b(k + 1, c) / off;
      b(k, c) = (second * x - y) / scale;
      b(k + 1, c) = (first * y - x) / scale;
    }
  }

  const Evaluation& e_;
  Matrix<double> a_;
  std::span<const int32_t> pivots_;
};

void meaning(const Evaluation& e) {
  const Result x = e.output();
  for (int64_t which = 0; which < count_of(e.input(0).shape); ++which) {
    Matrix<double> b = read<double>(e.input(2), which);
    System(e, which).solve(b);
    write(b, x, which);
  }
}

}  // namespace

OpDef define_ldl_solve() {
  return {.name = "ldl_solve",
          .doc = "x of A x = b, for A by its factors and pivots as ldl gives them.",
          .inputs = {{"factors", "[...,N,N]"}, {"pivots", "i32[...,N]"}, {"b", "[...,N,K]"}},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"ldl_solve(f32[3,3], i32[3] {3, -3, -3}, f32[3,2])",
                      "ldl_solve(f32[2,2,2], i32[2,2] {1, 2, -2, -2}, f32[2,2,1])"}};
}

}  // namespace hetnn::ops
