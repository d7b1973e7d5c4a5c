// What is written over what it is computed from: values of the arena, and states.
#pragma once

#include <cstdint>
#include <functional>

#include "hetnn/memory/liveness.h"
#include "hetnn/runtime/bound_program.h"
#include "hetnn/runtime/views.h"

namespace hetnn::runtime {

/// Where the phase's buffers lie: in others where its code would only copy them out of these, or may write them over
/// these and nothing reads these again. `has_place` says of a buffer whether it is given memory from outside, `ordered`
/// whether the subprograms run one after another.
Views lay_out(const BoundPhase& phase, const std::function<bool(int32_t)>& has_place, bool ordered);

/// The states that a phase of whole programs can keep in one block of memory each, so that a run that fails, is stopped
/// or falls back leaves them as they were: they are written by the last subprogram, behind all others and behind all of
/// its own work that can fail, and nothing reads their old values then. `views` says where buffers lie, `order` which
/// subprograms wait for which.
StatesInPlace find_states_in_place(const BoundPhase& phase, const Views& views, const memory::Liveness& order);

}  // namespace hetnn::runtime
