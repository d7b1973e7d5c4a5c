// The simulated NPU: DRAM, scratchpad, and the engines that execute decoded words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/pages.h"
#include "hetnn/base/requantize.h"
#include "hetnn/base/stop.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"
#include "hetnn/npu/timing.h"

namespace hetnn::sim {

/// Zeroed memory of pages that are not there before they are touched.
class Memory {
 public:
  /// DoesNotFit when there is none.
  Memory(int64_t bytes, std::string_view called);
  std::byte* data() const { return pages_.data(); }
  size_t size() const { return pages_.size_bytes(); }
  /// Makes it zeros again.
  void clear();

 private:
  Pages pages_;
};

/// One device with a program loaded. Values are those of the engines' arithmetic; cycles come from the same clock that
/// the compiler predicts with. Used by one run at a time.
class Machine {
 public:
  /// Decodes, verifies and times `words`. The read-only region holds `constants` one after another, each at the next
  /// multiple of npu::kConstantAlignment; they stay alive and unchanged as long as the machine. Throws InvalidModel for
  /// words that are no sound stream, DoesNotFit where the memory is not to be had.
  Machine(const npu::Spec& spec, std::span<const uint64_t> words, std::span<const std::span<const std::byte>> constants,
          int64_t arena_bytes);

  std::byte* arena() { return arena_.data(); }
  /// Of its memories, which take what is touched of them.
  int64_t bytes() const { return static_cast<int64_t>(arena_.size() + scratchpad_.size() + shadow_.size()); }
  /// Executes the stream. Throws InvalidModel naming the instruction that reads outside the constants, or scratchpad
  /// that was never written. Asks `stop`, which may be null, between instructions.
  void run(const Stop* stop = nullptr);

  const npu::Timing& timing() const { return timing_; }
  double seconds() const { return static_cast<double>(timing_.cycles) / spec_.clock_hz; }

 private:
#define HETNN_BEGIN(mnemonic, Type, engine, meaning, cycles) void execute(const npu::Type& i);
#define HETNN_FIELD(name, bits, sign, meaning)
#define HETNN_END()
#include "hetnn/npu/isa_table.inc"
  const std::byte* dram(int64_t region, int64_t addr, int64_t bytes, bool writes);
  std::byte* sram(int64_t addr, int64_t bytes);
  /// As sram, for reading: every byte must have been written since the run began.
  const std::byte* written(int64_t addr, int64_t bytes);
  /// `count` elements of `dtype` at `addr` as T: f32 and f16 as float, i8 and i32 as int32_t less `zero`.
  template <typename T>
  void read(int64_t addr, int64_t dtype, int64_t count, T* to, int32_t zero = 0);
  template <typename T>
  std::vector<T> read_rows(int64_t addr, int64_t dtype, int64_t rows, int64_t pitch, int64_t channels,
                           int32_t zero = 0);
  /// The reverse: f16 rounded to nearest even, i8 saturated.
  template <typename T>
  void write(int64_t addr, int64_t dtype, int64_t count, const T* from);
  std::vector<Requant> read_factors(int64_t addr, int64_t count, int64_t rounding);
  std::vector<Requant> read_pair_factors(int64_t addr, int64_t rounding);
  template <typename T>
  void convolve(const npu::Conv2d& i);
  template <typename T>
  void multiply(const npu::Matmul& i);
  template <typename T>
  void combine(const npu::Elementwise& i);
  template <typename T>
  void pool(const npu::Pool& i);
  template <typename T>
  void activate(const npu::Activation& i);
  void mark(int64_t addr, int64_t bytes);
  [[noreturn]] void fail(const std::string& what) const;

  npu::Spec spec_;
  std::vector<npu::Instruction> instructions_;
  std::vector<std::pair<int64_t, std::span<const std::byte>>> constants_;  // by where they begin
  Memory arena_;
  Memory scratchpad_;  // as far as the stream reaches
  Memory shadow_;      // for every byte, whether this run has written it
  npu::Timing timing_;
  size_t at_ = 0;  // the instruction being executed
};

}  // namespace hetnn::sim
