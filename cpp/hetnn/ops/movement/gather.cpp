// gather: slices of a tensor picked by indices along an axis.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/scatter/elements.h"
#include "hetnn/ops/scatter/positions.h"

namespace hetnn::ops {
namespace {

// x [A...,S,B...], indices any shape I -> y [A...,I...,B...].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &indices = call.input(1);
  check_indices(call);
  if (x.shape.empty()) fail(call, "gather_c3", "the input has rank 0, so there is no axis to pick from. Reshape it.");
  const auto axis = static_cast<size_t>(axis_of(call, call.integer("axis"), call.input(0).rank()));
  Shape y(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), indices.shape.begin(), indices.shape.end());
  y.insert(y.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  return {{x.dtype, y}};
}

template <typename Body>
void visit_indices(const View& indices, const Body& body) {
  indices.dtype == DType::i64 ? body(indices.values<int64_t>()) : body(indices.values<int32_t>());
}

void check(const Call& call, std::span<const View> inputs) {
  const View& x = inputs[0];
  const auto axis = static_cast<size_t>(axis_of(call, call.integer("axis"), x.rank()));
  check_positions(call, 2, inputs[1], x.shape[axis], call.flag("from_end"));
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  int64_t outer = 1, inner = dtype_bytes(x.dtype);
  for (size_t k = 0; k < axis; ++k) outer *= x.shape[k];
  for (size_t k = axis + 1; k < x.shape.size(); ++k) inner *= x.shape[k];
  const int64_t size = x.shape[axis];
  std::byte* to = e.output().data;
  visit_indices(e.input(1), [&](const auto picked) {
    for (int64_t o = 0; o < outer; ++o)
      for (const int64_t at : picked)
        to = std::copy_n(x.data + (o * size + (at < 0 ? at + size : at)) * inner, inner, to);
  });
}

}  // namespace

OpDef define_gather() {
  return {
      .name = "gather",
      .doc = "Slices of x picked by indices along an axis.",
      .inputs = {{"x", "any shape"}, {"indices", "i64 or i32, any shape"}},
      .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                {"from_end", AttrKind::boolean, true, "negative indices count from the back; else they are refused"}},
      .traits = static_cast<uint32_t>(Trait::movement),
      .torch = {{"aten.embedding.default", "x indices - - - from_end=false"}},
      .onnx = {{"Gather", 1, "x indices axis"}},
      .infer = infer,
      .check = check,
      .meaning = meaning,
      .keeps_batch = keeps_batch_beside_axis,
      .constraints = {},
      .tolerance = 0,
      .samples = {"gather(f32[5,3], i64[2] {4, 0})", "gather(f32[2,5,3], i64[1,2] {1, -1}) {axis = 1}",
                  "gather(i32[2,5], i32[3] {4, 0, -1}) {axis = 1}", "gather(i64[5], i64[2] {3, 1})"}};
}

}  // namespace hetnn::ops
