// What an instruction reads and writes in the scratchpad: one row of the instruction table, from its fields alone.
#pragma once

#include <string_view>
#include <vector>

#include "hetnn/npu/isa.h"

namespace hetnn::npu {

/// Fields have at most 40 bits, so that no product of three overflows.
__extension__ using Wide = __int128;

/// `outer` x `inner` runs of `bytes` in the scratchpad, from `addr` on.
struct Access {
  std::string_view what;  // for messages: "the weights"
  bool writes = false;
  Wide addr = 0, bytes = 0, inner = 1, inner_pitch = 0, outer = 1, outer_pitch = 0;

  bool empty() const { return bytes <= 0 || inner <= 0 || outer <= 0; }
  Wide end() const { return addr + (outer - 1) * outer_pitch + (inner - 1) * inner_pitch + bytes; }
};

/// All of an instruction, none of it empty; what it writes it may read before. A loop over elements that lie apart
/// counts with what lies between them.
std::vector<Access> accesses_of(const Instruction& instruction);
/// One past the last byte of the scratchpad that the instruction touches; of one that is known to fit.
int64_t sram_reach_bytes(const Instruction& instruction);

}  // namespace hetnn::npu
