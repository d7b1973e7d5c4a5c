// mean: the mean over axes.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

std::vector<Tensor> evaluate(const Evaluation& e) {
  return reduce_real(
      e, 0, [](double so_far, double x) { return so_far + x; },
      [](double so_far, [[maybe_unused]] int64_t count) { return so_far / static_cast<double>(count); });
}

}  // namespace

OpDef define_mean() {
  return reduction({.name = "mean",
                    .doc = "The mean over axes; no axes: over all.",
                    .torch = {},
                    .onnx = {"ReduceMean"},
                    .evaluate = evaluate,
                    .kernel = "mean",
                    .tolerance = 1e-5,
                    .samples = {"mean(f32[2,3,4,5]) {axes = [2,3]}", "mean(f32[n,4]) {axes = [-1], keepdim = true}",
                                "mean(f32[2,3])"}});
}

}  // namespace hetnn::ops
