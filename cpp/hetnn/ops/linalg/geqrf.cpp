// geqrf: the reflections that make matrices upper triangular, and what they leave.
#include <Eigen/QR>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_matrices(call);
  const Type& x = call.input(0);
  const size_t rank = x.shape.size();
  return {x, {x.dtype, stacked(x.shape, {min(x.shape[rank - 2], x.shape[rank - 1])})}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result factors = e.output(0), tau = e.output(1);
  if (x.elems() == 0) return;
  visit_precision(x.dtype, [&](auto t) {
    using T = decltype(t);
    for (int64_t which = 0; which < count_of(x.shape); ++which) {
      Matrix<T> a = read<T>(x, which);
      const T scale = scale_of(a);
      a /= scale;
      const Eigen::HouseholderQR<Eigen::Ref<Matrix<T>>> qr(a);
      a.template triangularView<Eigen::Upper>() *= scale;
      write(a, factors, which);
      write(qr.hCoeffs(), tau, which);
    }
  });
}

}  // namespace

OpDef define_geqrf() {
  return {
      .name = "geqrf",
      .doc =
          "x = H_1 ... H_k R with reflections H = I - tau v v^T: R on and above the diagonal, and below it what v has "
          "there; v is 1 on the diagonal and 0 above.",
      .inputs = {{"x", "[...,M,N]"}},
      .outputs = {"factors", "tau"},
      .traits = static_cast<uint32_t>(Trait::compute),
      .torch = {{"aten.geqrf.default", "x"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-4,
      .samples = {"geqrf(f32[4,3])", "geqrf(f32[2,3,4])"}};
}

}  // namespace hetnn::ops
