// Intervals of bytes with who touched them last; tokens from what must come before what.
#include "hetnn/npu/order.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::npu {
namespace {

// Of an access with more runs all bytes between them count.
constexpr Wide kMostRuns = 1 << 16;

}  // namespace

void Touched::touch_run(int64_t begin, int64_t end, bool writes, size_t engine, int64_t index, Finished& needed) {
  const auto pieces = stamps_.cut(begin, end);
  for (auto at = pieces.first; at != pieces.last; ++at) {
    Stamp& stamp = at->second;
    if (stamp.written > 0) needed[stamp.writer] = std::max(needed[stamp.writer], stamp.written);
    if (!writes) {
      stamp.read[engine] = index;
      continue;
    }
    for (size_t other = 0; other < needed.size(); ++other) needed[other] = std::max(needed[other], stamp.read[other]);
  }
  if (writes) stamps_.join(pieces, {engine, index, {}});
}

Finished Touched::touch(std::span<const Access> accesses, Engine engine, int64_t index) {
  Finished needed = {};
  for (const Access& access : accesses) {
    for_each_run(access, kMostRuns, [&](int64_t begin, int64_t end) {
      touch_run(begin, end, access.writes, static_cast<size_t>(engine), index, needed);
    });
  }
  needed[static_cast<size_t>(engine)] = 0;
  return needed;
}

void EngineClocks::learn(Engine engine, const Finished& what) {
  Finished& known = known_[static_cast<size_t>(engine)];
  for (size_t other = 0; other < known.size(); ++other) known[other] = std::max(known[other], what[other]);
}

Ordered ordered(std::span<const Instruction> instructions) {
  struct Issued {
    size_t at;       // among the instructions
    Finished known;  // by its engine, itself included
  };
  std::array<std::vector<Issued>, kEngines> issued;
  std::vector<std::vector<Wait>> waits(instructions.size());
  std::vector<std::vector<Signal>> signals(instructions.size());
  Touched touched;
  EngineClocks clocks;
  for (size_t k = 0; k < instructions.size(); ++k) {
    const Engine engine = engine_of(instructions[k]);
    if (engine == Engine::none) continue;
    const auto own = static_cast<size_t>(engine);
    const Finished before = clocks.of(engine);
    const int64_t index = clocks.issue(engine);
    const Finished needed = touched.touch(accesses_of(instructions[k]), engine, index);
    const auto is_new = [&](size_t other) { return other != own && needed[other] > before[other]; };
    const auto last = [&](size_t other) -> const Issued& {
      return issued[other][static_cast<size_t>(needed[other] - 1)];
    };
    for (size_t other = 0; other < needed.size(); ++other) {
      if (!is_new(other)) continue;
      // What a third engine must have finished may say it as well.
      bool said = false;
      for (size_t third = 0; third < needed.size(); ++third)
        said |= third != other && is_new(third) && last(third).known[other] >= needed[other];
      if (said) continue;
      const auto from = static_cast<int64_t>(other), to = static_cast<int64_t>(own);
      waits[k].push_back({.at = to, .from = from});
      signals[last(other).at].push_back({.from = from, .to = to});
    }
    for (size_t other = 0; other < needed.size(); ++other) {
      if (is_new(other)) clocks.learn(engine, last(other).known);
    }
    issued[own].push_back({k, clocks.of(engine)});
  }
  Ordered out;
  for (size_t k = 0; k < instructions.size(); ++k) {
    out.begins.push_back(out.instructions.size());
    out.instructions.insert(out.instructions.end(), waits[k].begin(), waits[k].end());
    out.instructions.push_back(instructions[k]);
    out.instructions.insert(out.instructions.end(), signals[k].begin(), signals[k].end());
  }
  return out;
}

}  // namespace hetnn::npu
