// What a kernel that refused its inputs is told as.
#pragma once

#include "hetnn/base/error.h"
#include "hetnn/ops/call.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::kernels {

/// Throws what the operator's check does, of inputs that a kernel of the call refused.
[[noreturn]] inline void tell_refused(const ops::Call& call, std::span<const ops::View> inputs) {
  if (call.op->check) call.op->check(call, inputs);
  throw InternalError(text(ops::describe(call), " was refused by its kernel and is right by its check"));
}

}  // namespace hetnn::kernels
