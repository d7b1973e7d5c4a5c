// What an instruction reads and writes in the scratchpad: one row of the instruction table, from its fields alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::npu {

/// Bytes of an accumulator and of a bias.
inline constexpr int64_t kSumBytes = 4;
/// Bytes of what a normalization adds to its squares.
inline constexpr int64_t kNormalEpsBytes = 8;

/// Fields have at most 40 bits, so that no product of three overflows.
__extension__ using Wide = __int128;

/// `outer` x `inner` runs of `bytes` in the scratchpad, from `addr` on.
struct Access {
  std::string_view what;  // for messages: "the weights"
  bool writes = false;
  Wide addr = 0, bytes = 0, inner = 1, inner_pitch = 0, outer = 1, outer_pitch = 0;
  Operand operand = Operand::maps;  // which of its engine's

  bool empty() const { return bytes <= 0 || inner <= 0 || outer <= 0; }
  Wide end() const { return addr + (outer - 1) * outer_pitch + (inner - 1) * inner_pitch + bytes; }
};

/// Calls f(begin, end) for each run of bytes of an access that is known to fit. Runs that touch each other are one; of
/// more than `most_runs` all bytes between them count.
template <typename F>
void for_each_run(const Access& access, Wide most_runs, F f) {
  Wide bytes = access.bytes, inner = access.inner, outer = access.outer;
  if (inner == 1 || access.inner_pitch <= bytes) {
    bytes += (inner - 1) * access.inner_pitch;
    inner = 1;
  }
  if (inner == 1 && (outer == 1 || access.outer_pitch <= bytes)) {
    bytes += (outer - 1) * access.outer_pitch;
    outer = 1;
  }
  if (inner * outer > most_runs) return f(static_cast<int64_t>(access.addr), static_cast<int64_t>(access.end()));
  for (Wide o = 0; o < outer; ++o) {
    for (Wide i = 0; i < inner; ++i) {
      const Wide begin = access.addr + o * access.outer_pitch + i * access.inner_pitch;
      f(static_cast<int64_t>(begin), static_cast<int64_t>(begin + bytes));
    }
  }
}

/// All of an instruction, none of it empty; what it writes it may read before. A loop over elements that lie apart
/// counts with what lies between them.
std::vector<Access> accesses_of(const Instruction& instruction);
/// One past the last byte of the scratchpad that the instruction touches; of one that is known to fit.
int64_t sram_reach_bytes(const Instruction& instruction);

}  // namespace hetnn::npu
