// Cores by the scheduler's affinity masks, and slices by its attributes.
#include "hetnn/base/pinned_core.h"

#include "hetnn/base/time_slices.h"

#if defined(__linux__)
#include <sched.h>

#include <atomic>
#include <bit>
#include <ctime>
#include <utility>
#endif

namespace hetnn {

#if defined(__linux__)
namespace {

constexpr uint64_t kLongSliceNs = 20'000'000;
// A core is shared where more of the time than one in so many was not the thread's.
constexpr int64_t kMostLost = 3;

// CPUs on which threads of this process work.
std::array<std::atomic<bool>, CPU_SETSIZE> taken;

thread_local PinnedCore* mine = nullptr;

bool take(int cpu) { return !taken[static_cast<size_t>(cpu)].exchange(true, std::memory_order_relaxed); }

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

// Whether the thread has it now: nobody works there, and it is moved there.
bool PinnedCore::keep(int cpu) {
  if (!take(cpu)) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  works_ = cpu == cpu_ || sched_setaffinity(0, sizeof one, &one) == 0;
  if (works_) {
    cpu_ = cpu;
    mine = this;
  } else {
    taken[static_cast<size_t>(cpu)].store(false, std::memory_order_relaxed);
  }
  return works_;
}

void PinnedCore::begin() {
  if (!std::exchange(patient_, true)) ask_for_slices(kLongSliceNs);
  begun_ns_ = clock_ns(CLOCK_MONOTONIC);
  begun_cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  cpu_set_t cpus;
  if (cpu_ >= 0) {
    cpus = std::bit_cast<cpu_set_t>(allowed_);
  } else if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
    allowed_ = std::bit_cast<decltype(allowed_)>(cpus);
  } else {
    return;
  }
  const int here = cpu_ >= 0 ? cpu_ : sched_getcpu();
  if (here >= 0 && here < CPU_SETSIZE && keep(here)) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus) && keep(cpu)) return;
  }
  release();
}

void PinnedCore::end() {
  if (!works_) return;
  works_ = false;
  taken[static_cast<size_t>(cpu_)].store(false, std::memory_order_relaxed);
  const int64_t took = clock_ns(CLOCK_MONOTONIC) - begun_ns_;
  const int64_t lost = took - (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_cpu_ns_);
  if (lost > took / kMostLost) release();
}

void PinnedCore::release() {
  if (works_) taken[static_cast<size_t>(cpu_)].store(false, std::memory_order_relaxed);
  works_ = false;
  if (cpu_ < 0) return;
  mine = nullptr;
  const auto cpus = std::bit_cast<cpu_set_t>(allowed_);
  sched_setaffinity(0, sizeof cpus, &cpus);
  cpu_ = -1;
}

void PinnedCore::release_mine() {
  if (mine) mine->release();
}
#else
bool PinnedCore::keep(int) { return false; }
void PinnedCore::begin() {}
void PinnedCore::end() {}
void PinnedCore::release() {}
void PinnedCore::release_mine() {}
#endif

}  // namespace hetnn
