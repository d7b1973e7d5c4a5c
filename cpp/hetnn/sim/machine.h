// The simulated NPU: DRAM, scratchpad, and the engines that execute decoded words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"
#include "hetnn/npu/timing.h"

namespace hetnn::sim {

/// One device with a program loaded. Values are those of the engines' arithmetic; cycles come from the same clock that
/// the compiler predicts with. Used by one run at a time.
class Machine {
 public:
  /// Decodes `words` and times them. `weights` stays alive and unchanged as long as the machine. Throws InvalidModel
  /// for words that are no sound stream.
  Machine(const npu::Spec& spec, std::span<const uint64_t> words, std::span<const std::byte> weights,
          int64_t arena_bytes);

  std::byte* arena() { return arena_.data(); }
  /// Executes the stream. Throws InternalError naming the instruction that reaches outside a memory, reads scratchpad
  /// that was never written, or is of a type the engine lacks.
  void run();

  const npu::Timing& timing() const { return timing_; }
  double seconds() const { return static_cast<double>(timing_.cycles) / spec_.clock_hz; }

 private:
  template <typename I>
  void execute(const I& instruction);
  const std::byte* dram(int64_t region, int64_t addr, int64_t bytes, bool writes);
  std::byte* sram(int64_t addr, int64_t bytes);
  /// As sram, for reading: every byte must have been written since the run began.
  const std::byte* written(int64_t addr, int64_t bytes);
  const float* read_rows(int64_t addr, int64_t rows, int64_t pitch, int64_t channels);
  float* write_rows(int64_t addr, int64_t rows, int64_t pitch, int64_t channels);
  void mark(int64_t addr, int64_t bytes);

  npu::Spec spec_;
  std::vector<npu::Instruction> instructions_;
  std::span<const std::byte> weights_;
  std::vector<std::byte> arena_;
  std::vector<std::byte> scratchpad_;
  std::vector<bool> shadow_;  // one bit for four bytes: written in this run
  npu::Timing timing_;
  size_t at_ = 0;  // the instruction being executed
};

}  // namespace hetnn::sim
