// rms_norm: scaling to a root mean square of one over the last axes.
#include <cmath>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/norm/last_axes.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) { return infer_over_last_axes(call, 2); }

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t n = elems_together(e);
  const double eps = e.call.real("eps");
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    const T* weight = e.has(1) ? e.input(1).values<T>().data() : nullptr;
    T* to = y.values<T>();
    for (int64_t first = 0; first < x.elems(); first += n) {
      double square = 0;
      for (int64_t k = 0; k < n; ++k) {
        const auto v = static_cast<double>(from[first + k]);
        square += v * v / static_cast<double>(n);
      }
      const double scale = 1 / std::sqrt(square + eps);
      for (int64_t k = 0; k < n; ++k) {
        const double v = static_cast<double>(from[first + k]) * scale;
        to[first + k] = static_cast<T>(weight ? v * static_cast<double>(weight[k]) : v);
      }
    }
  });
}

}  // namespace

OpDef define_rms_norm() {
  return {.name = "rms_norm",
          .doc = "Scaling over the last axes: y = x / sqrt(mean(x * x) + eps) * weight.",
          .inputs = {{"x", "any shape"}, {"weight", "the last axes' shape", true}},
          .attrs = {{"axes", AttrKind::integer, Dim(1), "how many axes at the end are scaled together"},
                    {"eps", AttrKind::real, 1e-5, "added to the mean square"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.output().shape) * 4}; },
          .keeps_batch = keeps_batch_before_axes,
          .tolerance = 1e-5,
          .samples = {"rms_norm(f32[2,3,8], f32[8])", "rms_norm(f32[n,4,5], _) {axes = 2}"}};
}

}  // namespace hetnn::ops
