// reduce_max: the greatest value over axes.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  reduce_extremes(e, [](auto a, auto b) { return a > b; });
}

}  // namespace

OpDef define_reduce_max() {
  return reduction(
      {.name = "reduce_max",
       .doc = "The greatest value over axes, NaN before all; no axes: over all.",
       .torch = {{"aten.amax.default", "x axes keepdim"}},
       .onnx = {"ReduceMax"},
       .meaning = meaning,
       .tolerance = 0,
       .samples = {"reduce_max(f32[2,3,4,5]) {axes = [2,3]}", "reduce_max(f32[2,0]) {axes = [1], of_none = true}",
                   "reduce_max(f32[n,4]) {axes = [-1], keepdim = true}", "reduce_max(f32[2,3])"},
       .of_none = true});
}

}  // namespace hetnn::ops
