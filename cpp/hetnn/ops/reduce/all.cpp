// all: whether all values are not 0.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) { return {{DType::boolean, reduced_shape(call)}}; }

std::vector<Tensor> evaluate(const Evaluation& e) {
  return reduce_real(
      e, 1, [](double so_far, double x) { return so_far != 0 && x != 0; }, as_gathered, DType::boolean);
}

}  // namespace

OpDef define_all() {
  return reduction({.name = "all",
                    .doc = "Whether all values over axes are not 0; no axes: over all.",
                    .torch = {},
                    .onnx = {},
                    .evaluate = evaluate,
                    .kernel = "all",
                    .tolerance = 0,
                    .samples = {"all(bool[2,3,4,5]) {axes = [2,3]}", "all(bool[n,4]) {axes = [-1], keepdim = true}",
                                "all(bool[2,3])"}},
                   infer);
}

}  // namespace hetnn::ops
