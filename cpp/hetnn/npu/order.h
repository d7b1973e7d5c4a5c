// The order of a stream's engines: which instructions must be finished before one may begin, and the tokens that say
// so.
//
// Each engine works through its own instructions in order, so that all an engine can know of another is how many of the
// other's are finished: a vector clock (Mattern, "Virtual time and global states of distributed systems", 1988). Two
// instructions of different engines that touch the same bytes, one of them writing, must be ordered.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hetnn/npu/access.h"
#include "hetnn/npu/intervals.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::npu {

/// How many instructions of each engine are finished.
using Finished = std::array<int64_t, kEngines>;

/// Who touched which bytes of the scratchpad last.
class Touched {
 public:
  /// Records the accesses of the `index`-th instruction of an engine (from 1), and returns how many instructions of
  /// each other engine must be finished before it.
  Finished touch(std::span<const Access> accesses, Engine engine, int64_t index);

 private:
  struct Stamp {
    size_t writer = 0;
    int64_t written = 0;  // 0: never
    Finished read = {};   // since then
  };
  void touch_run(int64_t begin, int64_t end, bool writes, size_t engine, int64_t index, Finished& needed);

  Intervals<Stamp> stamps_;
};

/// What each engine knows of the others while a stream is issued.
class EngineClocks {
 public:
  const Finished& of(Engine engine) const { return known_[static_cast<size_t>(engine)]; }
  /// One more instruction of the engine; its number, from 1.
  int64_t issue(Engine engine) { return ++known_[static_cast<size_t>(engine)][static_cast<size_t>(engine)]; }
  /// The engine learns what another knew.
  void learn(Engine engine, const Finished& what);

 private:
  std::array<Finished, kEngines> known_ = {};
};

/// An order of a stream without tokens in which transfers begin when they can instead of where they stand: of those
/// that may go first, the one that stands first. The engines' own instructions keep their order, and so does whatever
/// touches the same bytes, of the scratchpad or of the arena. Positions in the stream given.
std::vector<size_t> early_transfers(const Spec& spec, std::span<const Instruction> instructions);

/// A stream without tokens as one with them: a pair wherever two engines touch the same bytes and nothing orders them
/// yet, the signal as early and the wait as late as can be. No pair can be left out.
struct Ordered {
  std::vector<Instruction> instructions;
  std::vector<size_t> begins;  // of each instruction given, with the waits before it
};
Ordered ordered(std::span<const Instruction> instructions);

}  // namespace hetnn::npu
