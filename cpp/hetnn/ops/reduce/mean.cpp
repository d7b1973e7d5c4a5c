// mean: the mean over axes.
#include "hetnn/ops/mean.h"

#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const Result y = e.output();
  const int64_t count = y.elems() == 0 ? 0 : e.input(0).elems() / y.elems();
  visit_wide(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = MeanSum<T>;
    fold<T>(
        e, S(0), [](S so_far, T x) { return so_far + static_cast<S>(x); },
        [&, to = y.values<T>()](int64_t k, S sum) { to[k] = mean_of<T>(e.call, sum, count); });
  });
}

}  // namespace

OpDef define_mean() {
  return reduction({.name = "mean",
                    .doc = "The mean over axes; no axes: over all.",
                    .torch = {},
                    .onnx = {"ReduceMean"},
                    .meaning = meaning,
                    .tolerance = 1e-5,
                    .samples = {"mean(f32[2,3,4,5]) {axes = [2,3]}", "mean(f32[n,4]) {axes = [-1], keepdim = true}",
                                "mean(f32[2,3])"}});
}

}  // namespace hetnn::ops
