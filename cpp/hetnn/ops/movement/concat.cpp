// concat: tensors one behind the other along an axis.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  Type y = call.input(0);
  if (y.shape.empty()) fail(call, "concat_c2", "the inputs have rank 0, so there is no axis to join. Reshape them.");
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  for (size_t k = 1; k < call.inputs.size(); ++k) {
    const Type& x = call.input(k);
    Shape expected = y.shape;
    if (x.shape.size() == y.shape.size()) expected[static_cast<size_t>(axis)] = x.shape[static_cast<size_t>(axis)];
    if (x.dtype != y.dtype || x.shape != expected) {
      fail(call, "concat_c1",
           text("inputs must agree in all but axis ", axis, "; got ", to_string(call.input(0)), " and ", to_string(x),
                "."));
    }
    y.shape[static_cast<size_t>(axis)] = y.shape[static_cast<size_t>(axis)] + x.shape[static_cast<size_t>(axis)];
  }
  return {y};
}

void meaning(const Evaluation& e) {
  const Result y = e.output();
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), static_cast<int>(y.shape.size())));
  int64_t outer = 1, inner = dtype_bytes(y.dtype);
  for (size_t k = 0; k < axis; ++k) outer *= y.shape[k];
  for (size_t k = axis + 1; k < y.shape.size(); ++k) inner *= y.shape[k];
  std::byte* to = y.data;
  for (int64_t o = 0; o < outer; ++o) {
    for (const View& x : e.inputs) {
      const int64_t bytes = x.shape[axis] * inner;
      to = std::copy_n(x.data + o * bytes, bytes, to);
    }
  }
}

}  // namespace

OpDef define_concat() {
  return {.name = "concat",
          .doc = "Tensors one behind the other along an axis.",
          .inputs = {{"x", "equal but for the axis", false, true}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .primitive = Primitive::concat,
          .torch = {},
          .onnx = {{"Concat", 4, "x axis"}},
          .infer = infer,
          .meaning = meaning,
          .keeps_batch =
              [](const Call& call, Batched batched) {
                return axis_of(call, call.integer("axis"), call.output().rank()) != 0 &&
                       std::ranges::all_of(batched, [](bool each) { return each; });
              },
          .constraints = {},
          .tolerance = 0,
          .samples = {"concat(f32[2,3,4], f32[2,1,4], f32[2,5,4]) {axis = 1}", "concat(i64[n,2], i64[3,2])"}};
}

}  // namespace hetnn::ops
