// permute: axes in another order.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& perm = call.integers("perm");
  Shape axes;
  for (int k = 0; k < x.rank(); ++k) axes.emplace_back(k);
  if (!std::is_permutation(perm.begin(), perm.end(), axes.begin(), axes.end())) {
    fail(call, "permute_c1",
         text("perm must name every axis of the input once; got ", to_string(perm), " for ", to_string(x.shape), "."));
  }
  Shape y;
  for (const Dim& axis : perm) y.push_back(x.shape[static_cast<size_t>(axis.value())]);
  return {{x.dtype, y}};
}

std::optional<Shape> seen(const Call& call, const Shape& strides) {
  Shape out;
  for (const Dim& axis : call.integers("perm")) out.push_back(strides[static_cast<size_t>(axis.value())]);
  return out;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  copy_strided(x, 0, seen_strides(e.call, x.shape), y);
}

}  // namespace

OpDef define_permute() {
  return {.name = "permute",
          .doc = "Axes in another order: axis k of y is axis perm[k] of x.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"perm", AttrKind::integers, std::nullopt, "for every axis of y the axis of x"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .primitive = Primitive::rearrange,
          .torch = {},
          .onnx = {"Transpose"},
          .infer = infer,
          .meaning = meaning,
          .seen = seen,
          .keeps_batch =
              [](const Call& call, Batched batched) {
                return keeps_batch_of_first(call, batched) && call.integers("perm")[0] == Dim(0);
              },
          .constraints = {},
          .tolerance = 0,
          .samples = {"permute(f32[2,3,4]) {perm = [2,0,1]}", "permute(i64[n,4]) {perm = [1,0]}",
                      "permute(f32[3,2,4]) {perm = [0,2,1]}"}};
}

}  // namespace hetnn::ops
