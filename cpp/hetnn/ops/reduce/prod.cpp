// prod: the product over axes.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  reduce_sums(e, 1, [](auto so_far, auto x) { return so_far * x; });
}

}  // namespace

OpDef define_prod() {
  return reduction({.name = "prod",
                    .doc = "The product over axes; no axes: over all.",
                    .torch = {},
                    .onnx = {"ReduceProd"},
                    .meaning = meaning,
                    .tolerance = 1e-5,
                    .samples = {"prod(f32[2,3,4,5]) {axes = [2,3]}", "prod(f32[n,4]) {axes = [-1], keepdim = true}",
                                "prod(f32[2,3])"}});
}

}  // namespace hetnn::ops
