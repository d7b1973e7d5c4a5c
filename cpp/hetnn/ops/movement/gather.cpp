// gather: slices of a tensor picked by indices along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

// x [A...,S,B...], indices any shape I -> y [A...,I...,B...].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &indices = call.input(1);
  if (indices.dtype != DType::i64 && indices.dtype != DType::i32) {
    fail(call, "gather_c1", text("indices must be i64 or i32; got ", dtype_name(indices.dtype), ". Cast them."));
  }
  const auto axis = static_cast<size_t>(axis_of(call, call.integer("axis"), call.input(0).rank()));
  Shape y(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), indices.shape.begin(), indices.shape.end());
  y.insert(y.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  return {{x.dtype, y}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor &x = e.input(0), &indices = e.input(1);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  int64_t outer = 1, inner = dtype_bytes(x.dtype());
  for (size_t k = 0; k < axis; ++k) outer *= x.shape()[k];
  for (size_t k = axis + 1; k < x.shape().size(); ++k) inner *= x.shape()[k];
  const int64_t size = x.shape()[axis];
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), e.output_shape(), &data);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < indices.elems(); ++k) {
      int64_t at = indices.dtype() == DType::i64 ? indices.values<int64_t>()[static_cast<size_t>(k)]
                                                 : indices.values<int32_t>()[static_cast<size_t>(k)];
      if (at < -size || at >= size)
        fail(e.call, "gather_c2", text("index ", at, " is outside an axis of ", size, ". Check the indices."));
      at = at < 0 ? at + size : at;
      data = std::copy_n(x.data() + (o * size + at) * inner, inner, data);
    }
  }
  return {y};
}

}  // namespace

OpDef define_gather() {
  return {.name = "gather",
          .doc = "Slices of x picked by indices along an axis; negative indices count from the back.",
          .inputs = {{"x", "any shape"}, {"indices", "i64 or i32, any shape"}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {{"aten.embedding.default", "x indices - - -"}},
          .onnx = {"Gather"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("gather", {"axis"}, KernelUse::Layout::plain),
          .tolerance = 0,
          .samples = {"gather(f32[5,3], i64[2] {4, 0})", "gather(f32[2,5,3], i64[1,2] {1, -1}) {axis = 1}"}};
}

}  // namespace hetnn::ops
