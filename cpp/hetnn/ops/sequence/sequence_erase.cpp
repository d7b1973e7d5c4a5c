// sequence_erase: a sequence without one of its tensors.
#include <algorithm>

#include "hetnn/ops/sequence/sequence.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_sequence(call);
  check_place(call, 2);
  return sequence_types(call.input(0).dtype, call.integer("total"), max(call.input(1).shape[0] - 1, 0));
}

void meaning(const Evaluation& e) {
  const Tensors before = tensors_of(e);
  if (before.shapes.empty()) fail(e.call, "sequence_erase_c4", "the sequence is empty: there is nothing to erase.");
  const auto at = static_cast<size_t>(place_of(e, 2, before.count(), before.count(), before.count() - 1));
  Tensors behind;
  for (size_t k = 0; k < before.shapes.size(); ++k) {
    if (k != at) behind.add(before.shapes[k]);
  }
  define(e, "total", behind.begins.back());
  const int64_t bytes = dtype_bytes(e.input(0).dtype);
  const std::byte* from = e.input(0).data;
  std::byte* to = e.output(0, {behind.begins.back()}).data;
  to = std::copy_n(from, before.begins[at] * bytes, to);
  std::copy(from + before.begins[at + 1] * bytes, from + before.begins.back() * bytes, to);
  write_shapes(e, behind);
}

}  // namespace

OpDef define_sequence_erase() {
  std::vector<InputDef> inputs = sequence_inputs();
  inputs.push_back({"place", "one integer: which; absent: the last one", true});
  return {
      .name = "sequence_erase",
      .doc = "A sequence without one of its tensors.",
      .inputs = inputs,
      .attrs = {found_size("total", "the number of elements that are left")},
      .outputs = {"values", "shapes"},
      .onnx = {{"SequenceErase"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"sequence_erase(f32[7], i64[2,9] {1,3,0,0,0,0,0,0,0, 2,2,2,0,0,0,0,0,0}, i64[] {0}) {total = left}",
                  "sequence_erase(f32[7], i64[2,9] {1,3,0,0,0,0,0,0,0, 2,2,2,0,0,0,0,0,0}, _) {total = 3}"}};
}

}  // namespace hetnn::ops
