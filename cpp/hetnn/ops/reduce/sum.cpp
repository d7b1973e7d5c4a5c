// sum: the sum over axes.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  reduce_sums(e, 0, [](auto so_far, auto x) { return so_far + x; });
}

}  // namespace

OpDef define_sum() {
  return reduction({.name = "sum",
                    .doc = "The sum over axes; no axes: over all.",
                    .torch = {},
                    .onnx = {"ReduceSum"},
                    .meaning = meaning,
                    .tolerance = 1e-5,
                    .samples = {"sum(f32[2,3,4,5]) {axes = [2,3]}", "sum(f32[n,4]) {axes = [-1], keepdim = true}",
                                "sum(f32[2,3])"}});
}

}  // namespace hetnn::ops
