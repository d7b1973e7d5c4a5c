// Threads: parallel regions on one pool of the process, and what their threads meet at.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace hetnn {

/// A barrier for a fixed number of threads that spins for a bounded time, then yields, then sleeps.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  /// Returns when all threads have arrived. Writes made before by any of them are visible after.
  void arrive_and_wait();

  int threads() const { return threads_; }
  /// How long threads have waited beyond what those in balance do, added up.
  std::chrono::steady_clock::duration waited() const {
    return std::chrono::steady_clock::duration(waited_.load(std::memory_order_relaxed));
  }

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  std::atomic<std::chrono::steady_clock::rep> waited_{0};
};

/// CPUs this process may run on: its affinity mask's, not the machine's count, or as many as the environment's
/// HETNN_CPUS says; at least 1. Throws InvalidModel when that is no number from 1 to 4096.
int usable_cpus();

/// How many threads a region gets when `requested` are asked for: 1 <= result <= usable_cpus(). 0 or less asks for all,
/// or for as many as the environment's OMP_NUM_THREADS says where HETNN_CPUS does not.
int usable_threads(int requested);

namespace detail {
void parallel_region_impl(int threads, bool all, void (*call)(void*, int, SpinBarrier&), void* function);
}

/// Runs function(thread) once on each of `threads` threads (thread = 0 is the caller) and returns when all are done.
/// They all run at once, so they may wait for one another. `threads` is taken as it is: pass it through usable_threads
/// first. The first exception thrown by any of them is rethrown here; a function that uses a barrier must not throw
/// between its waits.
template <typename Function>
void parallel_region(int threads, Function&& function) {
  using F = std::remove_reference_t<Function>;
  detail::parallel_region_impl(
      threads, true, [](void* f, int thread, SpinBarrier&) { (*static_cast<F*>(f))(thread); },
      const_cast<void*>(static_cast<const void*>(std::addressof(function))));
}

/// While it lives, regions that this thread begins by parallel_region_up_to have at most so many threads.
class ThreadsAtMost {
 public:
  explicit ThreadsAtMost(int threads);
  ~ThreadsAtMost();
  ThreadsAtMost(const ThreadsAtMost&) = delete;
  ThreadsAtMost& operator=(const ThreadsAtMost&) = delete;

 private:
  const int before_;
};

/// As parallel_region, with function(thread, barrier) on as many threads up to `most` as are idle: all callers of the
/// process together keep no more threads busy than there are CPUs, and themselves, and fewer while other processes take
/// the cores. The barrier is for those threads, and knows how many they are.
template <typename Function>
void parallel_region_up_to(int most, Function&& function) {
  using F = std::remove_reference_t<Function>;
  detail::parallel_region_impl(
      most, false, [](void* f, int thread, SpinBarrier& barrier) { (*static_cast<F*>(f))(thread, barrier); },
      const_cast<void*>(static_cast<const void*>(std::addressof(function))));
}

/// function(k) for every 0 <= k < count, in any order, by the threads that are idle.
template <typename Function>
void parallel_each(int64_t count, const Function& function) {
  std::atomic<int64_t> next = 0;
  parallel_region_up_to(count < 2 ? 1 : usable_threads(0), [&](int, SpinBarrier&) {
    for (int64_t k = next++; k < count; k = next++) function(k);
  });
}

/// The half-open share [begin, end) of `total` items that falls to one thread, in multiples of `step` where possible.
struct Share {
  int64_t begin;
  int64_t end;
};
Share share_of(int64_t total, int thread, int threads, int64_t step = 1);

}  // namespace hetnn
