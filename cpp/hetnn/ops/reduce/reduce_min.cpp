// reduce_min: the least value over axes.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  reduce_extremes(e, [](auto a, auto b) { return a < b; });
}

}  // namespace

OpDef define_reduce_min() {
  return reduction(
      {.name = "reduce_min",
       .doc = "The least value over axes, NaN before all; no axes: over all.",
       .torch = {{"aten.amin.default", "x axes keepdim"}},
       .onnx = {"ReduceMin"},
       .meaning = meaning,
       .tolerance = 0,
       .samples = {"reduce_min(f32[2,3,4,5]) {axes = [2,3]}", "reduce_min(f32[2,0]) {axes = [1], of_none = true}",
                   "reduce_min(f32[n,4]) {axes = [-1], keepdim = true}", "reduce_min(f32[2,3])"},
       .of_none = true});
}

}  // namespace hetnn::ops
