// sequence_at: one tensor of a sequence.
#include <algorithm>

#include "hetnn/ops/late.h"
#include "hetnn/ops/sequence/sequence.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_sequence(call);
  check_place(call, 2);
  return {{call.input(0).dtype, call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  const Tensors tensors = tensors_of(e);
  const auto place = static_cast<size_t>(place_of(e, 2, tensors.count(), tensors.count(), 0));
  const int64_t bytes = dtype_bytes(e.input(0).dtype);
  const Result y = late_output(e, tensors.shapes[place]);
  std::copy_n(e.input(0).data + tensors.begins[place] * bytes, y.elems() * bytes, y.data);
}

}  // namespace

OpDef define_sequence_at() {
  std::vector<InputDef> inputs = sequence_inputs();
  inputs.push_back({"place", "one integer: the tensor's place, from the back where negative"});
  return {
      .name = "sequence_at",
      .doc = "One tensor of a sequence.",
      .inputs = inputs,
      .attrs = {sizes_attr()},
      .onnx = {{"SequenceAt"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"sequence_at(f32[7], i64[2,9] {1,3,0,0,0,0,0,0,0, 2,2,2,0,0,0,0,0,0}, i64[] {-1}) {sizes = [a,b]}"}};
}

}  // namespace hetnn::ops
