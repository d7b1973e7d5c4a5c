// apply_reflections: matrices multiplied by the reflections that geqrf gives.
#include <Eigen/Householder>
#include <algorithm>

#include "hetnn/ops/linalg/reflections.h"

namespace hetnn::ops {

template <typename T>
void reflect(const Matrix<T>& factors, const Vector<T>& tau, bool transposed, Matrix<T>& x, bool identity) {
  const auto product = Eigen::householderSequence(factors.leftCols(tau.size()), tau);
  if (transposed) {
    product.transpose().applyThisOnTheLeft(x, identity);
  } else {
    product.applyThisOnTheLeft(x, identity);
  }
}

template void reflect(const Matrix<float>&, const Vector<float>&, bool, Matrix<float>&, bool);
template void reflect(const Matrix<double>&, const Vector<double>&, bool, Matrix<double>&, bool);

namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  check_matrices(call, 2);
  const Type &factors = call.input(0), &tau = call.input(1), &c = call.input(2);
  const size_t rank = factors.shape.size();
  if (tau.dtype != factors.dtype || c.dtype != factors.dtype || tau.rank() + 1 != factors.rank() ||
      tau.shape != stacked(factors.shape, {tau.shape.back()}) || c.shape.size() != rank ||
      stacked(c.shape, {c.shape[rank - 2]}) != stacked(factors.shape, {factors.shape[rank - 2]})) {
    fail(call, "apply_reflections_c2",
         text("it takes factors [...,M,N], tau [...,K] and c [...,M,P] of one type; got ", to_string(factors), ", ",
              to_string(tau), " and ", to_string(c), "."));
  }
  return {c};
}

void meaning(const Evaluation& e) {
  const View &factors = e.input(0), &tau = e.input(1), &c = e.input(2);
  const Result y = e.output();
  const int64_t count = tau.shape.back(), rows = c.shape[c.shape.size() - 2];
  if (count > std::min(rows, factors.shape.back()))
    fail(e.call, "apply_reflections_c3",
         text("there are ", count, " reflections in a matrix of ", rows, " rows and ", factors.shape.back(),
              " columns. Give one tau a column, and no more than rows."));
  if (c.elems() == 0) return;
  visit_precision(c.dtype, [&](auto t) {
    using T = decltype(t);
    const std::vector<T> taus = values_as<T>(tau);
    for (int64_t which = 0; which < count_of(c.shape); ++which) {
      const Matrix<T> v = read<T>(factors, which);
      const Vector<T> h = Eigen::Map<const Vector<T>>(taus.data() + which * count, count);
      Matrix<T> x = read<T>(c, which);
      reflect(v, h, e.call.flag("transposed"), x);
      write(x, y, which);
    }
  });
}

}  // namespace

OpDef define_apply_reflections() {
  return {
      .name = "apply_reflections",
      .doc =
          "y = H_1 ... H_K c, or its transpose times c: reflections H = I - tau v v^T, whose v is what column k of the "
          "factors has below the diagonal, 1 on it and 0 above, as geqrf gives them.",
      .inputs = {{"factors", "[...,M,N]"}, {"tau", "[...,K]"}, {"c", "[...,M,P]"}},
      .attrs = {{"transposed", AttrKind::boolean, false, "whether c is multiplied by the transpose"}},
      .traits = static_cast<uint32_t>(Trait::compute),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-4,
      .samples = {"apply_reflections(f32[4,3], f32[3], f32[4,2])",
                  "apply_reflections(f64[2,3,3], f64[2,2], f64[2,3,5]) {transposed = true}"}};
}

}  // namespace hetnn::ops
