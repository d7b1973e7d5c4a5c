// concat: tensors one behind the other along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  Type y = call.input(0);
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  for (size_t k = 1; k < call.inputs.size(); ++k) {
    const Type& x = call.input(k);
    Shape expected = y.shape;
    if (x.shape.size() == y.shape.size()) expected[static_cast<size_t>(axis)] = x.shape[static_cast<size_t>(axis)];
    if (x.dtype != y.dtype || x.shape != expected) {
      fail(call, "concat_c1",
               text("inputs must agree in all but axis ", axis, "; got ", to_string(call.input(0)), " and ",
                    to_string(x), "."));
    }
    y.shape[static_cast<size_t>(axis)] = y.shape[static_cast<size_t>(axis)] + x.shape[static_cast<size_t>(axis)];
  }
  return {y};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const std::vector<int64_t> out = e.output_shape();
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), static_cast<int>(out.size())));
  int64_t outer = 1, inner = dtype_bytes(e.input(0).dtype());
  for (size_t k = 0; k < axis; ++k) outer *= out[k];
  for (size_t k = axis + 1; k < out.size(); ++k) inner *= out[k];
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(e.input(0).dtype(), out, &data);
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t k = 0; k < e.inputs.size(); ++k) {
      const int64_t bytes = e.input(k).shape()[axis] * inner;
      data = std::copy_n(e.input(k).data() + o * bytes, bytes, data);
    }
  }
  return {y};
}

}  // namespace

OpDef define_concat() {
  return {.name = "concat",
          .doc = "Tensors one behind the other along an axis.",
          .inputs = {{"x", "equal but for the axis", false, true}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {"Concat"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("concat", {"axis"}),
          .tolerance = 0,
          .samples = {"concat(f32[2,3,4], f32[2,1,4], f32[2,5,4]) {axis = 1}", "concat(i64[n,2], i64[3,2])"}};
}

}  // namespace hetnn::ops
