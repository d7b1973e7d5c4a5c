// What operators on the bits of integers share.
#pragma once

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

/// As broadcast_inputs. Fails with `<op>_c3` for reals.
inline std::vector<Type> infer_bitwise(const Call& call) {
  if (is_real(call.input(0))) {
    fail(call, text(call.op->name, "_c3"),
         text("its inputs must be integers or bool; got ", to_string(call.input(0)), ". Cast them."));
  }
  return broadcast_inputs(call);
}

/// Whether a T has a bit number `place`.
template <typename T>
bool within(T place) {
  return place >= T(0) && static_cast<uint64_t>(place) < 8 * sizeof(T);
}

/// The operator: two inputs, one type.
inline OpDef bitwise(OpDef def) {
  def.inputs = {{"a", "integers or bool, any shape"}, {"b", "broadcasts with a"}};
  def.traits |= static_cast<uint32_t>(Trait::elementwise);
  def.infer = infer_bitwise;
  def.tolerance = 0;
  return def;
}

}  // namespace hetnn::ops
