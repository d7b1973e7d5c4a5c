// sequence_concat: the tensors of a sequence along one axis.
#include <algorithm>

#include "hetnn/ops/late.h"
#include "hetnn/ops/sequence/sequence.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_sequence(call);
  fixed_integer(call, "axis");
  return {{call.input(0).dtype, call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  Tensors tensors = tensors_of(e);
  if (tensors.shapes.empty()) fail(e.call, "sequence_concat_c4", "the sequence is empty: its tensors have no shape.");
  const bool stacks = e.call.flag("new_axis");
  const int rank = static_cast<int>(tensors.shapes[0].size()) + (stacks ? 1 : 0);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), rank));
  if (rank == 0) fail(e.call, "sequence_concat_c5", "tensors of rank 0 have no axis to lie along. Stack them.");
  std::vector<int64_t> shape;
  int64_t along = 0;
  for (std::vector<int64_t>& each : tensors.shapes) {
    if (stacks) each.insert(each.begin() + static_cast<int64_t>(std::min(axis, each.size())), 1);
    if (shape.empty()) shape = each;
    if (each.size() == shape.size()) along += std::exchange(each[axis], shape[axis]);
    if (each != shape) {
      fail(e.call, "sequence_concat_c5",
           text("tensors must be alike but along axis ", axis, "; got ", to_string(Shape(shape.begin(), shape.end())),
                " and ", to_string(Shape(each.begin(), each.end())), "."));
    }
  }
  int64_t outer = 1;
  for (size_t k = 0; k < axis; ++k) outer *= shape[k];
  shape[axis] = along;
  const int64_t bytes = dtype_bytes(e.input(0).dtype);
  std::byte* to = late_output(e, std::move(shape)).data;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t k = 0; k < tensors.shapes.size(); ++k) {
      const int64_t part = (tensors.begins[k + 1] - tensors.begins[k]) / outer * bytes;
      to = std::copy_n(e.input(0).data + tensors.begins[k] * bytes + o * part, part, to);
    }
  }
}

}  // namespace

OpDef define_sequence_concat() {
  return {
      .name = "sequence_concat",
      .doc = "The tensors of a sequence along an axis, one behind the other; or stacked along a new one.",
      .inputs = sequence_inputs(),
      .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                {"new_axis", AttrKind::boolean, false, "whether it is a new one"},
                sizes_attr()},
      .onnx = {{"ConcatFromSequence"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"sequence_concat(f32[6], i64[2,9] {2,2,1,0,0,0,0,0,0, 2,2,2,0,0,0,0,0,0}) {axis = 1, sizes = [a,b]}",
                  "sequence_concat(f32[6], i64[2,9] {1,3,0,0,0,0,0,0,0, 1,3,0,0,0,0,0,0,0}) {axis = -1, new_axis = "
                  "true, sizes = [3,2]}"}};
}

}  // namespace hetnn::ops
