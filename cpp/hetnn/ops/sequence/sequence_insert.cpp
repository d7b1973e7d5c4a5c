// sequence_insert: a sequence with one more tensor.
#include <algorithm>

#include "hetnn/ops/sequence/sequence.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_sequence(call);
  check_place(call, 3);
  const Type& x = call.input(2);
  if (x.dtype != call.input(0).dtype || x.rank() > kMostAxes) {
    fail(call, "sequence_insert_c5",
         text("x must be ", dtype_name(call.input(0).dtype), " as the sequence, of rank ", kMostAxes, " at most; got ",
              to_string(x), "."));
  }
  return sequence_types(x.dtype, call.input(0).shape[0] + elements(x.shape), call.input(1).shape[0] + 1);
}

void meaning(const Evaluation& e) {
  const Tensors before = tensors_of(e);
  const View& x = e.input(2);
  const int64_t place = place_of(e, 3, before.count(), before.count() + 1, before.count());
  const auto at = static_cast<size_t>(place);
  Tensors behind;
  for (size_t k = 0; k <= before.shapes.size(); ++k) {
    if (k == at) behind.add({x.shape.begin(), x.shape.end()});
    if (k < before.shapes.size()) behind.add(before.shapes[k]);
  }
  const int64_t bytes = dtype_bytes(x.dtype), split = before.begins[at] * bytes, all = before.begins.back() * bytes;
  std::byte* to = e.output(0, {behind.begins.back()}).data;
  to = std::copy_n(e.input(0).data, split, to);
  to = std::copy_n(x.data, x.elems() * bytes, to);
  std::copy_n(e.input(0).data + split, all - split, to);
  write_shapes(e, behind);
}

}  // namespace

OpDef define_sequence_insert() {
  std::vector<InputDef> inputs = sequence_inputs();
  inputs.push_back({"x", "the tensor, of the sequence's element type"});
  inputs.push_back({"place", "one integer: before which tensor; absent: behind all", true});
  return {.name = "sequence_insert",
          .doc = "A sequence with one more tensor.",
          .inputs = inputs,
          .outputs = {"values", "shapes"},
          .onnx = {{"SequenceInsert"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"sequence_insert(f32[3], i64[1,9] {1,3,0,0,0,0,0,0,0}, f32[2,n], i64[] {0})",
                      "sequence_insert(i64[0], i64[0,9], i64[], _)"}};
}

}  // namespace hetnn::ops
