// Executes decoded words on bytes: memories, transfers and moves. The engines' arithmetic is in arithmetic.cpp.
#include "hetnn/sim/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "hetnn/base/error.h"
#include "hetnn/base/progress.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/verify.h"

namespace hetnn::sim {

using namespace hetnn::npu;  // NOLINT(google-build-using-namespace): the instructions' own names

Memory::Memory(int64_t bytes, std::string_view called) {
  try {
    pages_ = Pages(static_cast<size_t>(bytes), /*sparse=*/true);
  } catch (const std::bad_alloc&) {
    throw DoesNotFit(text(called, " of the simulated NPU takes ", bytes, " bytes, which this process cannot have."));
  }
}

void Memory::clear() {
  // Beyond a few pages it costs less to give them back.
  constexpr size_t kFew_bytes = size_t{1} << 20;
  if (size() <= kFew_bytes || ::madvise(data(), size(), MADV_DONTNEED) != 0) std::fill_n(data(), size(), std::byte{0});
}

Machine::Machine(const Spec& spec, std::span<const uint64_t> words,
                 std::span<const std::span<const std::byte>> constants, int64_t arena_bytes)
    : spec_(spec),
      instructions_(decode(words)),
      arena_(arena_bytes, "the arena"),
      scratchpad_(verify_stream(spec_, instructions_, arena_bytes).scratchpad_bytes, "the scratchpad"),
      shadow_(static_cast<int64_t>(scratchpad_.size()), "the scratchpad"),
      timing_(time_stream(spec_, instructions_)) {
  int64_t at = 0;
  for (const std::span<const std::byte> constant : constants) {
    constants_.emplace_back(at, constant);
    at =
        (at + static_cast<int64_t>(constant.size()) + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
  }
}

void Machine::fail(const std::string& what) const {
  throw InvalidModel(text("instruction ", at_, " (", to_text(instructions_[at_]), ") ", what,
                          ". The stream was altered; compile the model again."));
}

// A transfer's run lies in the arena, or in one constant.
const std::byte* Machine::dram(int64_t region, int64_t addr, int64_t bytes, bool writes) {
  const bool arena = region == static_cast<int64_t>(Region::arena);
  std::span<const std::byte> memory(arena_.data(), arena_.size());
  int64_t begin = 0;
  if (!arena) {
    auto after = std::upper_bound(constants_.begin(), constants_.end(), addr,
                                  [](int64_t value, const auto& constant) { return value < constant.first; });
    memory = {};
    if (after != constants_.begin()) std::tie(begin, memory) = *std::prev(after);
  }
  const auto size = static_cast<int64_t>(memory.size());
  if (addr - begin > size - bytes || (writes && !arena))
    fail(text("reaches bytes [", addr, ", +", bytes, ") of a region of ", size, " from ", begin));
  return memory.data() + (addr - begin);
}

std::byte* Machine::sram(int64_t addr, int64_t bytes) {
  if (bytes == 0) return scratchpad_.data();  // nothing is verified of where nothing lies
  HETNN_ASSERT(addr >= 0 && bytes >= 0 && addr <= static_cast<int64_t>(scratchpad_.size()) - bytes, "instruction ", at_,
               " (", to_text(instructions_[at_]), ") was verified and reaches bytes [", addr, ", +", bytes, ")");
  return scratchpad_.data() + addr;
}

void Machine::mark(int64_t addr, int64_t bytes) {
  if (bytes > 0) std::memset(shadow_.data() + addr, 1, static_cast<size_t>(bytes));
}

const std::byte* Machine::written(int64_t addr, int64_t bytes) {
  const std::byte* out = sram(addr, bytes);
  if (bytes > 0 && std::memchr(shadow_.data() + addr, 0, static_cast<size_t>(bytes)) != nullptr)
    fail("reads scratchpad that was never written");
  return out;
}

void Machine::execute(const DmaLoad& i) {
  for (int64_t b = 0; i.size0 > 0 && b < i.size2; ++b) {
    for (int64_t a = 0; a < i.size1; ++a) {
      const std::byte* from = dram(i.region, i.dram_addr + b * i.dram_stride2 + a * i.dram_stride1, i.size0, false);
      const int64_t to = i.sram_addr + b * i.sram_stride2 + a * i.sram_stride1;
      std::memcpy(sram(to, i.size0), from, static_cast<size_t>(i.size0));
      mark(to, i.size0);
    }
  }
}

void Machine::execute(const DmaStore& i) {
  for (int64_t b = 0; i.size0 > 0 && b < i.size2; ++b) {
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
        // Two elements may share bytes.
        std::memmove(sram(to, i.elem_bytes), from, static_cast<size_t>(i.elem_bytes));
        mark(to, i.elem_bytes);
      }
    }
  }
}

void Machine::run(const Stop* stop) {
  shadow_.clear();
  for (at_ = 0; at_ < instructions_.size(); ++at_) {
    if (stop) stop->check();
    announce_parts(at_, instructions_.size());
    std::visit(
        [&](const auto& instruction) {
          using I = std::decay_t<decltype(instruction)>;
          if constexpr (I::kEngine != Engine::none) execute(instruction);
        },
        instructions_[at_]);
  }
}

}  // namespace hetnn::sim
