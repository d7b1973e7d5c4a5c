// all: whether all values are not 0.
#include "hetnn/ops/reduce/reduction.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) { return {{DType::boolean, reduced_shape(call)}}; }

void meaning(const Evaluation& e) {
  reduce_booleans(e, true, [](bool so_far, bool x) { return so_far && x; });
}

}  // namespace

OpDef define_all() {
  return reduction({.name = "all",
                    .doc = "Whether all values over axes are not 0; no axes: over all.",
                    .torch = {},
                    .onnx = {},
                    .meaning = meaning,
                    .tolerance = 0,
                    .samples = {"all(bool[2,3,4,5]) {axes = [2,3]}", "all(bool[n,4]) {axes = [-1], keepdim = true}",
                                "all(bool[2,3])"}},
                   infer);
}

}  // namespace hetnn::ops
