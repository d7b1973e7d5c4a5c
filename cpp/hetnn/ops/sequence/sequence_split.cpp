// sequence_split: the parts of a tensor along an axis, as a sequence.
#include <algorithm>

#include "hetnn/ops/late.h"
#include "hetnn/ops/sequence/sequence.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_integers(call, 1);
  const Type& x = call.input(0);
  if (x.rank() < 1 || x.rank() > kMostAxes) {
    fail(call, "sequence_split_c2", text("x must have a rank of 1 to ", kMostAxes, "; got ", to_string(x), "."));
  }
  axis_of(call, call.integer("axis"), x.rank());
  return sequence_types(x.dtype, elements(x.shape), call.integer("count"));
}

// The sizes of the parts.
std::vector<int64_t> parts_of(const Evaluation& e, int64_t size) {
  const int64_t each = e.has(1) && e.input(1).rank() == 0 ? values_as<int64_t>(e.input(1))[0] : 1;
  std::vector<int64_t> parts =
      e.has(1) && e.input(1).rank() == 1 ? values_as<int64_t>(e.input(1)) : std::vector<int64_t>();
  if (each < 1) fail(e.call, "sequence_split_c3", text("the size of a part must be positive; got ", each, "."));
  if (!e.has(1) || e.input(1).rank() == 0) {
    for (int64_t at = 0; at < size; at += std::min(each, size - at)) parts.push_back(std::min(each, size - at));
  }
  check_parts(e, "sequence_split_c3", parts, size);
  return parts;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  const std::vector<int64_t> parts = parts_of(e, x.shape[axis]);
  define(e, "count", static_cast<int64_t>(parts.size()));
  int64_t outer = 1, inner_bytes = dtype_bytes(x.dtype);
  for (size_t k = 0; k < axis; ++k) outer *= x.shape[k];
  for (size_t k = axis + 1; k < x.shape.size(); ++k) inner_bytes *= x.shape[k];
  Tensors tensors;
  std::byte* to = e.output(0, {x.elems()}).data;
  int64_t at = 0;
  for (const int64_t part : parts) {
    std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
    shape[axis] = part;
    if (!e.call.flag("keepdim") && !e.has(1)) shape.erase(shape.begin() + static_cast<int64_t>(axis));
    tensors.add(std::move(shape));
    for (int64_t o = 0; o < outer; ++o) {
      to = std::copy_n(x.data + (o * x.shape[axis] + at) * inner_bytes, part * inner_bytes, to);
    }
    at += part;
  }
  write_shapes(e, tensors);
}

}  // namespace

OpDef define_sequence_split() {
  return {
      .name = "sequence_split",
      .doc = "The parts of a tensor along an axis, as a sequence.",
      .inputs = {{"x", "rank 1 or more"},
                 {"parts", "integers: the size of all parts but the last, or, in rank 1, of each; absent: 1", true}},
      .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                {"keepdim", AttrKind::boolean, true, "without `parts`, whether parts keep the axis"},
                found_size("count", "the number of parts")},
      .outputs = {"values", "shapes"},
      .onnx = {{"SplitToSequence"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"sequence_split(f32[2,5], i64[] {2}) {axis = 1, count = parts}",
                  "sequence_split(f32[2,5], i64[2] {4,1}) {axis = 1, count = 2}",
                  "sequence_split(i64[2,n], _) {keepdim = false, count = parts}"}};
}

}  // namespace hetnn::ops
