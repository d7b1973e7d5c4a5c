// What gives a region its threads. Internal to base.
#pragma once

#include <atomic>
#include <chrono>

#include "hetnn/base/contention.h"
#include "hetnn/base/parallel.h"
#include "hetnn/base/spin.h"

namespace hetnn::detail {

/// call(function, thread, barrier) on every thread of a team.
using RegionCall = void (*)(void* function, int thread, SpinBarrier& barrier);

/// On the process's own pool: the caller and up to `threads` - 1 more, or exactly so many when `all` are needed, else
/// DoesNotFit.
void run_on_pool(int threads, bool all, RegionCall call, void* function);
/// On a team of OpenMP, which other libraries of the process may use, too: the caller and up to `threads` - 1 more.
void run_on_openmp(int threads, RegionCall call, void* function);

/// Waits for another value, spinning first. The time that went by once spinning was not enough.
template <typename T>
Contention::Clock::duration wait_while_equal(const std::atomic<T>& value, T old, int spins = kSpins) {
  using Clock = Contention::Clock;
  const auto changed = [&] { return value.load(std::memory_order_acquire) != old; };
  if (spin_until(changed, spins)) return {};
  const Clock::time_point begin = Clock::now();
  if (!yield_until(changed)) {
    while (!changed()) value.wait(old, std::memory_order_acquire);
  }
  return Clock::now() - begin;
}

}  // namespace hetnn::detail
