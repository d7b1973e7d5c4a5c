// Follows the engines through a stream and lets each transfer begin as soon as nothing before it is in its way.
#include <algorithm>
#include <deque>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/npu/intervals.h"
#include "hetnn/npu/order.h"
#include "hetnn/npu/timing.h"

namespace hetnn::npu {
namespace {

// Of an access with more runs all bytes between them count.
constexpr Wide kMostRuns = 64;
// Transfers that are looked at for the next: how far one may go ahead of those before it.
constexpr size_t kWindow = 256;

// Who wrote and who read each byte of one memory last.
class Hazards {
 public:
  // The instructions that must be finished before `id` may touch [begin, end).
  void touch(int64_t begin, int64_t end, bool writes, size_t id, std::vector<size_t>& before) {
    const auto pieces = stamps_.cut(begin, end);
    for (auto at = pieces.first; at != pieces.last; ++at) {
      Stamp& stamp = at->second;
      if (stamp.writer != kNobody) before.push_back(stamp.writer);
      if (writes)
        before.insert(before.end(), stamp.readers.begin(), stamp.readers.end());
      else if (stamp.readers.empty() || stamp.readers.back() != id)
        stamp.readers.push_back(id);
    }
    if (writes) stamps_.join(pieces, {id, {}});
  }

 private:
  static constexpr size_t kNobody = std::numeric_limits<size_t>::max();
  struct Stamp {
    size_t writer = kNobody;
    std::vector<size_t> readers;  // since then
  };
  Intervals<Stamp> stamps_;
};

template <typename I>
void touch_arena(Hazards& arena, const I& i, bool writes, size_t id, std::vector<size_t>& before) {
  if (i.region != static_cast<int64_t>(Region::arena) || i.size0 * i.size1 * i.size2 == 0) return;
  arena.touch(i.dram_addr, i.dram_addr + (i.size1 - 1) * i.dram_stride1 + (i.size2 - 1) * i.dram_stride2 + i.size0,
              writes, id, before);
}

}  // namespace

std::vector<size_t> early_transfers(const Spec& spec, std::span<const Instruction> instructions) {
  const size_t count = instructions.size();
  std::vector<std::vector<size_t>> before(count);
  std::array<std::deque<size_t>, kEngines> queues;
  std::vector<Cost> costs(count);
  Hazards scratchpad, arena;
  for (size_t k = 0; k < count; ++k) {
    const Engine engine = engine_of(instructions[k]);
    HETNN_ASSERT(engine != Engine::none, "a stream without tokens");
    queues[static_cast<size_t>(engine)].push_back(k);
    costs[k] = cost_of(spec, instructions[k]);
    for (const Access& access : accesses_of(instructions[k])) {
      for_each_run(access, kMostRuns,
                   [&](int64_t begin, int64_t end) { scratchpad.touch(begin, end, access.writes, k, before[k]); });
    }
    if (const auto* load = std::get_if<DmaLoad>(&instructions[k])) touch_arena(arena, *load, false, k, before[k]);
    if (const auto* store = std::get_if<DmaStore>(&instructions[k])) touch_arena(arena, *store, true, k, before[k]);
    std::sort(before[k].begin(), before[k].end());
    before[k].erase(std::unique(before[k].begin(), before[k].end()), before[k].end());
  }
  constexpr int64_t kUnknown = -1;
  std::vector<int64_t> done(count, kUnknown);
  std::array<int64_t, kEngines> free_at = {};
  std::vector<size_t> order;
  order.reserve(count);
  // When everything before it is finished; unknown where something has not begun.
  const auto ready_at = [&](size_t k) {
    int64_t out = 0;
    for (const size_t each : before[k]) {
      if (each == k) continue;
      if (done[each] == kUnknown) return kUnknown;
      out = std::max(out, done[each]);
    }
    return out;
  };
  const auto begin = [&](size_t k, size_t engine, int64_t ready) {
    free_at[engine] = std::max(free_at[engine], ready) + costs[k].cycles;
    done[k] = free_at[engine] + costs[k].latency_cycles;
    order.push_back(k);
  };
  std::deque<size_t>& transfers = queues[static_cast<size_t>(Engine::dma)];
  while (order.size() < count) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (const Engine engine : {Engine::mac, Engine::vector}) {
        std::deque<size_t>& queue = queues[static_cast<size_t>(engine)];
        if (queue.empty()) continue;
        const int64_t ready = ready_at(queue.front());
        if (ready == kUnknown) continue;
        begin(queue.front(), static_cast<size_t>(engine), ready);
        queue.pop_front();
        moved = true;
      }
    }
    if (transfers.empty()) continue;
    const int64_t now = free_at[static_cast<size_t>(Engine::dma)];
    size_t best = transfers.size();
    int64_t best_ready = std::numeric_limits<int64_t>::max();
    for (size_t k = 0; k < std::min(transfers.size(), kWindow) && best_ready > now; ++k) {
      const int64_t ready = ready_at(transfers[k]);
      if (ready == kUnknown) continue;
      if (std::max(ready, now) < best_ready) best = k, best_ready = std::max(ready, now);
    }
    HETNN_ASSERT(best < transfers.size(), "the first transfer waits for nothing behind it");
    begin(transfers[best], static_cast<size_t>(Engine::dma), best_ready);
    transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return order;
}

}  // namespace hetnn::npu
