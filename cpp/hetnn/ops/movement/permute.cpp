// permute: axes in another order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<int64_t> order_of(const Call& call) {
  return per_axis(call, "perm", static_cast<size_t>(call.input(0).rank()));
}

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (call.integers("perm").size() != x.shape.size()) {
    fail(call, "permute_c1",
             text("perm must name every axis of the input once; got ", to_string(call.integers("perm")), " for ",
                  to_string(x.shape), "."));
  }
  const std::vector<int64_t> perm = x.shape.empty() ? std::vector<int64_t>{} : order_of(call);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Shape y;
  for (size_t k = 0; k < perm.size(); ++k) {
    if (sorted[k] != static_cast<int64_t>(k)) {
      fail(call, "permute_c1",
               text("perm must name every axis of the input once; got ", to_string(call.integers("perm")), " for ",
                    to_string(x.shape), "."));
    }
    y.push_back(x.shape[static_cast<size_t>(perm[k])]);
  }
  return {{x.dtype, y}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor& x = e.input(0);
  if (x.rank() == 0) return {x};
  const std::vector<int64_t> perm = order_of(e.call), from = strides_of(x.shape());
  std::vector<int64_t> strides;
  strides.reserve(perm.size());
  for (int64_t axis : perm) strides.push_back(from[static_cast<size_t>(axis)]);
  return {gather_strided(x, e.output_shape(), 0, strides)};
}

}  // namespace

OpDef define_permute() {
  return {.name = "permute",
          .doc = "Axes in another order: axis k of y is axis perm[k] of x.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"perm", AttrKind::integers, std::nullopt, "for every axis of y the axis of x"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {"Transpose"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel =
              [](const Call& call) {
                return KernelUse{.kernel = "transpose",
                                     .params = {{"perm", call.integers("perm")}},
                                     .layout = KernelUse::Layout::written_plain};
              },
          .tolerance = 0,
          .samples = {"permute(f32[2,3,4]) {perm = [2,0,1]}", "permute(i64[n,4]) {perm = [1,0]}"}};
}

}  // namespace hetnn::ops
