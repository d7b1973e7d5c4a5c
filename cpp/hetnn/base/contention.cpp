// Fewer threads while the cores are taken.
#include "hetnn/base/contention.h"

#include <algorithm>

#if defined(__linux__)
#include <sys/resource.h>
#endif

namespace hetnn {
namespace {

// A failed attempt costs about one time slice, some 3 ms; the longest pause keeps that to a fiftieth of the time.
constexpr Contention::Clock::duration kShortestPause = std::chrono::milliseconds(20);
constexpr Contention::Clock::duration kLongestPause = std::chrono::milliseconds(240);
// Threads that lose their cores so soon after a pause would have lost them during it.
constexpr Contention::Clock::duration kSoon = std::chrono::milliseconds(20);
// Of one wait no more counts than a time slice or half of its region: whoever takes a core once may keep it for longer.
constexpr Contention::Clock::duration kSlice = std::chrono::milliseconds(4);
// How much slower than fewer threads is borne, and how much right after a pause.
constexpr Contention::Clock::duration kMostLost = std::chrono::milliseconds(4);
constexpr Contention::Clock::duration kMostLostAgain = std::chrono::milliseconds(2);

}  // namespace

int64_t lost_cores() {
#if defined(__linux__)
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) return usage.ru_nivcsw;
#endif
  return 0;
}

int Contention::worthwhile(int most, Clock::time_point now) const {
  if (now.time_since_epoch().count() >= until_.load(std::memory_order_relaxed)) return most;
  return std::max(1, most - fewer_.load(std::memory_order_relaxed));
}

void Contention::report(int lost, int threads, Clock::duration waited, Clock::duration took, Clock::time_point now) {
  const int fewer = std::min(lost, threads - 1);
  const auto worth = [&](Clock::duration time) { return time * fewer / (threads + 1); };
  const Clock::rep at = now.time_since_epoch().count();
  const Clock::duration since(at - reported_at_.exchange(at, std::memory_order_relaxed));
  const Clock::duration counted = std::min(waited / (threads - fewer), std::max(kSlice, took / 2));
  constexpr Clock::duration kNone{};
  const Clock::duration left =
      std::max(kNone, Clock::duration(lost_.load(std::memory_order_relaxed)) - worth(since - took));
  const Clock::duration in_all = std::max(kNone, left + counted - worth(took));
  const bool again = at - took.count() - until_.load(std::memory_order_relaxed) < kSoon.count();
  const bool counts = in_all >= (again ? kMostLostAgain : kMostLost);
  lost_.store(counts ? 0 : in_all.count(), std::memory_order_relaxed);
  if (!counts) return;
  const Clock::rep pause = pause_.load(std::memory_order_relaxed);
  const Clock::rep next =
      again ? std::clamp(2 * pause, kShortestPause.count(), kLongestPause.count()) : kShortestPause.count();
  fewer_.store(fewer, std::memory_order_relaxed);
  pause_.store(next, std::memory_order_relaxed);
  until_.store(at + next, std::memory_order_relaxed);
}

}  // namespace hetnn
