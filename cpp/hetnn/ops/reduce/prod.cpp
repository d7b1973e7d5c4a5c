// prod: the product over axes.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

std::vector<Tensor> evaluate(const Evaluation& e) {
  return reduce_real(
      e, 1, [](double so_far, double x) { return so_far * x; }, as_gathered);
}

}  // namespace

OpDef define_prod() {
  return reduction({.name = "prod",
                    .doc = "The product over axes; no axes: over all.",
                    .torch = {},
                    .onnx = {"ReduceProd"},
                    .evaluate = evaluate,
                    .kernel = "prod",
                    .tolerance = 1e-5,
                    .samples = {"prod(f32[2,3,4,5]) {axes = [2,3]}", "prod(f32[n,4]) {axes = [-1], keepdim = true}",
                                "prod(f32[2,3])"}});
}

}  // namespace hetnn::ops
