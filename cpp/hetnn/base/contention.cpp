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
constexpr Contention::Clock::duration kSoon = std::chrono::milliseconds(60);
// What may be waited on the whole: less than a time slice at once, and a fifth of the time.
constexpr Contention::Clock::duration kMostWaited = std::chrono::milliseconds(1);
constexpr int kWaitedShare = 5;

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

void Contention::report(int lost, Clock::duration waited, Clock::time_point now) {
  const Clock::rep at = now.time_since_epoch().count();
  const Clock::rep forgiven = (at - waited_at_.exchange(at, std::memory_order_relaxed)) / kWaitedShare;
  const Clock::rep in_all =
      std::max<Clock::rep>(0, waited_.load(std::memory_order_relaxed) - forgiven) + waited.count();
  const bool counts = in_all >= kMostWaited.count();
  waited_.store(counts ? 0 : in_all, std::memory_order_relaxed);
  if (!counts) return;
  const Clock::rep pause = pause_.load(std::memory_order_relaxed);
  const bool again = at - until_.load(std::memory_order_relaxed) < kSoon.count();
  const Clock::rep next =
      again ? std::clamp(2 * pause, kShortestPause.count(), kLongestPause.count()) : kShortestPause.count();
  fewer_.store(lost, std::memory_order_relaxed);
  pause_.store(next, std::memory_order_relaxed);
  until_.store(at + next, std::memory_order_relaxed);
}

}  // namespace hetnn
