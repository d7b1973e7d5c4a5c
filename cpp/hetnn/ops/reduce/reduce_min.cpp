// reduce_min: the least value over axes.
#include <limits>

#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

std::vector<Tensor> evaluate(const Evaluation& e) {
  return reduce_real(
      e, std::numeric_limits<double>::infinity(),
      [](double so_far, double x) { return so_far != so_far || so_far < x ? so_far : x; }, as_gathered);
}

}  // namespace

OpDef define_reduce_min() {
  return reduction({.name = "reduce_min",
                    .doc = "The least value over axes, NaN before all; no axes: over all.",
                    .torch = {{"aten.amin.default", "x axes keepdim"}},
                    .onnx = {"ReduceMin"},
                    .evaluate = evaluate,
                    .kernel = "min",
                    .tolerance = 0,
                    .samples = {"reduce_min(f32[2,3,4,5]) {axes = [2,3]}",
                                "reduce_min(f32[n,4]) {axes = [-1], keepdim = true}", "reduce_min(f32[2,3])"}});
}

}  // namespace hetnn::ops
