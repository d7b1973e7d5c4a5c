// compress: the slices of a tensor that a mask picks.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// x [A...,S,B...], mask [M], M <= S -> y [A...,count,B...].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &mask = call.input(1);
  if (mask.dtype != DType::boolean || mask.rank() != 1) {
    fail(call, "compress_c1", text("mask must be bool of rank 1; got ", to_string(mask), ". Cast or reshape it."));
  }
  if (x.shape.empty()) fail(call, "compress_c2", "the input has rank 0, so there is no axis to pick from. Reshape it.");
  Shape y = x.shape;
  Dim& size = y[static_cast<size_t>(axis_of(call, call.integer("axis"), x.rank()))];
  if (const Dim gap = size - mask.shape[0]; gap.is_static() && gap.value() < 0) {
    fail(call, "compress_c3",
         text("mask must be no longer than the axis; got ", mask.shape[0], " for ", size, ". Check the axis."));
  }
  size = call.integer("count");
  return {{x.dtype, y}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const auto mask = e.input(1).values<bool>();
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  int64_t outer = 1, inner_bytes = dtype_bytes(x.dtype);
  for (size_t k = 0; k < axis; ++k) outer *= x.shape[k];
  for (size_t k = axis + 1; k < x.shape.size(); ++k) inner_bytes *= x.shape[k];
  std::vector<int64_t> y(x.shape.begin(), x.shape.end());
  y[axis] = std::count(mask.begin(), mask.end(), true);
  define(e, "count", y[axis]);
  std::byte* to = e.output(0, y).data;
  for (int64_t o = 0; o < outer; ++o) {
    const std::byte* from = x.data + o * x.shape[axis] * inner_bytes;
    for (size_t k = 0; k < mask.size(); ++k) {
      if (mask[k]) to = std::copy_n(from + static_cast<int64_t>(k) * inner_bytes, inner_bytes, to);
    }
  }
}

}  // namespace

OpDef define_compress() {
  return {.name = "compress",
          .doc = "The slices of x along an axis at which the mask is true; behind the mask's end it is false.",
          .inputs = {{"x", "rank 1 or more"}, {"mask", "bool of rank 1, no longer than the axis"}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                    found_size("count", "the number of slices that are picked")},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"compress(f32[5,3], bool[5]) {count = found}",
                      "compress(i64[2,n], bool[n]) {axis = -1, count = found}",
                      "compress(f32[1,4,3,2], bool[3]) {axis = 1, count = found}"}};
}

}  // namespace hetnn::ops
