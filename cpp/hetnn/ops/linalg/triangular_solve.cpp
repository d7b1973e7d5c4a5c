// triangular_solve: the X of A X = B for triangular A.
#include "hetnn/ops/linalg/dense.h"
#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_square(call);
  check_matrices(call, 1);
  const Type &a = call.input(0), &b = call.input(1);
  if (a.dtype != b.dtype || stacked(a.shape, {}) != stacked(b.shape, {}) ||
      a.shape[a.shape.size() - 1] != b.shape[b.shape.size() - 2]) {
    fail(call, "triangular_solve_c3",
         text("a must be [...,N,N] and b [...,N,K] of one type; got ", to_string(a), " and ", to_string(b), "."));
  }
  return {b};
}

void meaning(const Evaluation& e) {
  const View &a = e.input(0), &b = e.input(1);
  const Result y = e.output();
  if (b.elems() == 0) return;
  visit_precision(a.dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t k = 0; k < count_of(a.shape); ++k) {
      Matrix<T> x = read<T>(b, k);
      Matrix<T> factor = read<T>(a, k);
      if (e.call.flag("unit")) factor.diagonal().setOnes();
      solve_triangular(factor.data(), x.rows(), x.data(), x.cols(), e.call.flag("upper"));
      write(x, y, k);
    }
  });
}

}  // namespace

OpDef define_triangular_solve() {
  return {.name = "triangular_solve",
          .doc = "X of A X = B; only one half of A is read.",
          .inputs = {{"a", "[...,N,N]"}, {"b", "[...,N,K]"}},
          .attrs = {{"upper", AttrKind::boolean, true, "whether the upper half of A is read, or the lower"},
                    {"unit", AttrKind::boolean, false, "whether the diagonal counts as ones"}},
          .traits = static_cast<uint32_t>(Trait::compute),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-4,
          .samples = {"triangular_solve(f32[2,2] {2, 1, 1, 3}, f32[2,3])",
                      "triangular_solve(f32[2,2] {2, 1, 1, 3}, f32[2,1]) {upper = false, unit = true}"}};
}

}  // namespace hetnn::ops
