// The proof that a stream is sound on a device: one pass over its instructions
// before any is executed.
#pragma once

#include <cstdint>
#include <span>

#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::npu {

/// What a sound stream works on.
struct Needs {
  int64_t scratchpad_bytes = 0;  // one past the last that it reaches
};

/// Multiply-accumulates, elements and bytes moved that one stream may take:
/// hours of simulation.
inline constexpr double kMostWork = 0x1p44;

/// Throws InvalidModel naming the instruction whose fields are no choice or
/// size there is, which reaches outside the scratchpad or the arena, works on
/// more than fits into the scratchpad, passes a token that nobody takes, or
/// touches bytes that another engine may still be at ("unordered", proved from
/// the words alone); and DoesNotFit beyond kMostWork. What a transfer reads of the constants and
/// whether scratchpad was written before is left to the device. Linear in the
/// stream.
Needs verify_stream(const Spec& spec, std::span<const Instruction> instructions, int64_t arena_bytes);

}  // namespace hetnn::npu
