// Executes decoded words on bytes: memories, transfers and moves. The engines' arithmetic is in arithmetic.cpp.
#include "hetnn/sim/machine.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "hetnn/base/error.h"
#include "hetnn/npu/code.h"

namespace hetnn::sim {

using namespace hetnn::npu;  // NOLINT(google-build-using-namespace): the instructions' own names

Machine::Machine(const Spec& spec, std::span<const uint64_t> words,
                 std::span<const std::span<const std::byte>> constants, int64_t arena_bytes)
    : spec_(spec),
      instructions_(decode(words)),
      arena_(static_cast<size_t>(arena_bytes)),
      scratchpad_(static_cast<size_t>(spec.scratchpad().bytes)),
      shadow_(static_cast<size_t>(spec.scratchpad().bytes)),
      timing_(time_stream(spec_, instructions_)) {
  int64_t at = 0;
  for (const std::span<const std::byte> constant : constants) {
    constants_.emplace_back(at, constant);
    at =
        (at + static_cast<int64_t>(constant.size()) + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
  }
}

// A transfer's run lies in the arena, or in one constant.
const std::byte* Machine::dram(int64_t region, int64_t addr, int64_t bytes, bool writes) {
  const bool arena = region == static_cast<int64_t>(Region::arena);
  std::span<const std::byte> memory = arena_;
  int64_t begin = 0;
  if (!arena) {
    auto after = std::upper_bound(constants_.begin(), constants_.end(), addr,
                                  [](int64_t value, const auto& constant) { return value < constant.first; });
    memory = {};
    if (after != constants_.begin()) std::tie(begin, memory) = *std::prev(after);
  }
  const auto size = static_cast<int64_t>(memory.size());
  HETNN_ASSERT(addr >= 0 && bytes >= 0 && addr - begin <= size - bytes && (arena || !writes), "instruction ", at_, " (",
               to_text(instructions_[at_]), ") reaches bytes [", addr, ", +", bytes, ") of a region of ", size,
               " from ", begin);
  return memory.data() + (addr - begin);
}

std::byte* Machine::sram(int64_t addr, int64_t bytes) {
  HETNN_ASSERT(addr >= 0 && bytes >= 0 && addr <= static_cast<int64_t>(scratchpad_.size()) - bytes, "instruction ", at_,
               " (", to_text(instructions_[at_]), ") reaches bytes [", addr, ", +", bytes, ") of a scratchpad of ",
               scratchpad_.size());
  return scratchpad_.data() + addr;
}

void Machine::mark(int64_t addr, int64_t bytes) { std::memset(shadow_.data() + addr, 1, static_cast<size_t>(bytes)); }

const std::byte* Machine::written(int64_t addr, int64_t bytes) {
  const std::byte* out = sram(addr, bytes);
  HETNN_ASSERT(std::memchr(shadow_.data() + addr, 0, static_cast<size_t>(bytes)) == nullptr, "instruction ", at_, " (",
               to_text(instructions_[at_]), ") reads scratchpad that was never written");
  return out;
}

void Machine::execute(const DmaLoad& i) {
  for (int64_t b = 0; b < i.size2; ++b) {
    for (int64_t a = 0; a < i.size1; ++a) {
      const std::byte* from = dram(i.region, i.dram_addr + b * i.dram_stride2 + a * i.dram_stride1, i.size0, false);
      const int64_t to = i.sram_addr + b * i.sram_stride2 + a * i.sram_stride1;
      std::memcpy(sram(to, i.size0), from, static_cast<size_t>(i.size0));
      mark(to, i.size0);
    }
  }
}

void Machine::execute(const DmaStore& i) {
  for (int64_t b = 0; b < i.size2; ++b) {
    for (int64_t a = 0; a < i.size1; ++a) {
      const std::byte* from = written(i.sram_addr + b * i.sram_stride2 + a * i.sram_stride1, i.size0);
      // Checked as writable, so this is the arena.
      auto* to =
          const_cast<std::byte*>(dram(i.region, i.dram_addr + b * i.dram_stride2 + a * i.dram_stride1, i.size0, true));
      std::memcpy(to, from, static_cast<size_t>(i.size0));
    }
  }
}

void Machine::execute(const Move& i) {
  for (int64_t c = 0; c < i.size2; ++c) {
    for (int64_t b = 0; b < i.size1; ++b) {
      for (int64_t a = 0; a < i.size0; ++a) {
        const std::byte* from =
            written(i.in_addr + c * i.in_stride2 + b * i.in_stride1 + a * i.in_stride0, i.elem_bytes);
        const int64_t to = i.out_addr + c * i.out_stride2 + b * i.out_stride1 + a * i.out_stride0;
        std::memcpy(sram(to, i.elem_bytes), from, static_cast<size_t>(i.elem_bytes));
        mark(to, i.elem_bytes);
      }
    }
  }
}

void Machine::run(const Stop* stop) {
  std::fill(shadow_.begin(), shadow_.end(), uint8_t{0});
  for (at_ = 0; at_ < instructions_.size(); ++at_) {
    if (stop) stop->check();
    std::visit(
        [&](const auto& instruction) {
          using I = std::decay_t<decltype(instruction)>;
          if constexpr (I::kEngine != Engine::none) execute(instruction);
        },
        instructions_[at_]);
  }
}

}  // namespace hetnn::sim
