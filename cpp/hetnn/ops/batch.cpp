// What operators say of batches, and what follows for calls.
#include "hetnn/ops/batch.h"

#include <algorithm>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

bool is_first_alone(Batched batched) {
  return !batched.empty() && batched[0] && std::count(batched.begin(), batched.end(), true) == 1;
}

}  // namespace

bool keeps_batch(const Call& call, Batched batched) {
  if (std::ranges::none_of(batched, [](bool each) { return each; })) return false;
  if (call.op->keeps_batch) return call.op->keeps_batch(call, batched);
  return call.op->has(Trait::elementwise) && keeps_batch_of_all(call, batched);
}

Attrs attrs_of_entries(const Call& call, const Dim& entries) {
  Attrs out = call.attrs;
  const auto shape = out.find("shape");
  if (shape == out.end() || call.outputs.empty()) return out;
  auto* sizes = std::get_if<std::vector<Dim>>(&shape->second);
  if (sizes && !sizes->empty() && *sizes == call.output().shape) sizes->front() = entries;
  return out;
}

bool keeps_batch_of_first(const Call& call, Batched batched) {
  return is_first_alone(batched) && call.input(0).rank() > 1;
}

bool keeps_batch_beside_axis(const Call& call, Batched batched) {
  const int rank = call.input(0).rank();
  return is_first_alone(batched) && rank > 0 && axis_of(call, call.integer("axis"), rank) != 0;
}

bool keeps_batch_beside_axes(const Call& call, Batched batched) {
  if (!is_first_alone(batched)) return false;
  const std::vector<int> axes = reduced_axes(call);
  return !axes.empty() && axes.front() != 0;
}

bool keeps_batch_before_axes(const Call& call, Batched batched) {
  return is_first_alone(batched) && call.integer("axes").is_static() &&
         call.integer("axes").value() < call.input(0).rank();
}

bool keeps_batch_of_all(const Call& call, Batched batched) {
  for (size_t k = 0; k < batched.size(); ++k)
    if (batched[k] && call.input(k).rank() != call.output().rank()) return false;
  return true;
}

}  // namespace hetnn::ops
