// tensor_scatter: new entries written into a cache, from a place of its own for each batch.
#include <algorithm>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

int cache_axis(const Call& call) {
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  if (axis == 0) fail(call, "tensor_scatter_c1", "axis 0 is that of the batches; choose another one.");
  return axis;
}

// cache [N,...,S,...], update [N,...,T,...] with T <= S, places [N] -> y as the cache.
std::vector<Type> infer(const Call& call) {
  const Type &cache = call.input(0), &update = call.input(1);
  const auto axis = static_cast<size_t>(cache_axis(call));
  Shape rest = update.shape;
  if (rest.size() == cache.shape.size()) rest[axis] = cache.shape[axis];
  const Dim room = rest == cache.shape ? cache.shape[axis] - update.shape[axis] : Dim(0);
  if (rest != cache.shape || cache.dtype != update.dtype || (room.is_static() && room.value() < 0)) {
    fail(call, "tensor_scatter_c2",
         text("the update must be as the cache, but may be shorter along axis ", axis, "; got ", to_string(update),
              " for ", to_string(cache), "."));
  }
  if (call.has(2) && call.input(2) != Type{DType::i64, {cache.shape[0]}}) {
    fail(call, "tensor_scatter_c3",
         text("places must be i64[", cache.shape[0], "], one a batch; got ", to_string(call.input(2)), "."));
  }
  return {cache};
}

void meaning(const Evaluation& e) {
  const View &cache = e.input(0), &update = e.input(1);
  const Result y = e.output();
  const auto axis = static_cast<size_t>(cache_axis(e.call));
  const int64_t batches = cache.shape[0], room = cache.shape[axis], entries = update.shape[axis];
  int64_t outer = 1, inner_bytes = dtype_bytes(cache.dtype);
  for (size_t k = 1; k < axis; ++k) outer *= cache.shape[k];
  for (size_t k = axis + 1; k < cache.shape.size(); ++k) inner_bytes *= cache.shape[k];
  std::copy_n(cache.data, cache.elems() * dtype_bytes(cache.dtype), y.data);
  for (int64_t n = 0; n < batches; ++n) {
    const int64_t first = e.has(2) ? e.input(2).values<int64_t>()[static_cast<size_t>(n)] : 0;
    const bool circular = e.call.flag("circular");
    if (first < 0 || first >= std::max<int64_t>(room, 1) || (!circular && first > room - entries)) {
      fail(e.call, "tensor_scatter_c4",
           text(entries, " entries from place ", first, " on do not lie in a cache of ", room, "."));
    }
    for (int64_t o = n * outer; o < (n + 1) * outer; ++o) {
      for (int64_t k = 0; k < entries; ++k) {
        std::copy_n(update.data + (o * entries + k) * inner_bytes, inner_bytes,
                    y.data + (o * room + (first + k) % room) * inner_bytes);
      }
    }
  }
}

}  // namespace

OpDef define_tensor_scatter() {
  return {.name = "tensor_scatter",
          .doc = "A cache with new entries along an axis, from a place of its own for each batch on.",
          .inputs = {{"cache", "[N,...]"},
                     {"update", "as the cache, no longer along the axis"},
                     {"places", "i64[N]: the first entry's; absent: 0", true}},
          .attrs = {{"axis", AttrKind::integer, Dim(-2), "the axis of entries, not 0"},
                    {"circular", AttrKind::boolean, false, "whether entries behind the end go to the front"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .onnx = {"TensorScatter"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"tensor_scatter(f32[2,3,5,4], f32[2,3,2,4], i64[2] {1, 3})",
                      "tensor_scatter(f32[2,5,4], f32[2,3,4], i64[2] {4, 0}) {circular = true}"}};
}

}  // namespace hetnn::ops
