// Threads: affinity, the OpenMP region and the barrier inside it.
#include "hetnn/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace hetnn {
namespace {

// About 20 us of pausing (a pause takes 140 cycles on recent Intel cores), then some yields, before the thread sleeps:
// longer than any gap between two kernels that are in balance, short enough that a descheduled partner does not cost a
// whole time slice of spinning.
constexpr int kSpins = 400;
constexpr int kYields = 64;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The threads of an OpenMP team do not survive a fork, and GNU's runtime waits for them all the same: a forked child,
// such as a worker of a process pool, makes threads of its own.
#if defined(__linux__)
std::atomic<bool> forked{false};
const int at_fork = pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
bool in_forked_child() { return at_fork == 0 && forked.load(std::memory_order_relaxed); }
#else
bool in_forked_child() { return false; }
#endif

}  // namespace

void SpinBarrier::arrive_and_wait() {
  if (threads_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  for (int i = 0; i < kSpins; ++i) {
    if (phase_.load(std::memory_order_acquire) != phase) return;
    pause_cpu();
  }
  for (int i = 0; i < kYields; ++i) {
    if (phase_.load(std::memory_order_acquire) != phase) return;
    std::this_thread::yield();
  }
  while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase, std::memory_order_acquire);
}

int usable_cpus() {
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return std::max(1, CPU_COUNT(&mask));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int usable_threads(int requested) {
  const int cpus = usable_cpus();
  return requested <= 0 ? cpus : std::min(requested, cpus);
}

namespace detail {

void parallel_region_impl(int threads, void (*call)(void*, int), void* function) {
  if (threads <= 1) {
    call(function, 0);
    return;
  }
  std::exception_ptr error;
  std::mutex mutex;
  auto guarded = [&](int thread) {
    try {
      call(function, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  bool done = false;
  if (!in_forked_child()) {
#pragma omp parallel num_threads(threads)
    {
      // A smaller team (a thread limit, a region around this one) would wait at the barrier for ever.
      if (omp_get_num_threads() == threads) {
        guarded(omp_get_thread_num());
#pragma omp master
        done = true;
      }
    }
  }
  if (!done) {
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(guarded, thread);
    guarded(0);
    for (std::thread& other : others) other.join();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

Share share_of(int64_t total, int thread, int threads, int64_t step) {
  const int64_t steps = (total + step - 1) / step;
  const int64_t begin = steps * thread / threads * step;
  const int64_t end = steps * (thread + 1) / threads * step;
  return {std::min(begin, total), std::min(end, total)};
}

}  // namespace hetnn
