// Regions on teams of OpenMP, where hetnn is built with HETNN_THREADS=openmp.
#if defined(HETNN_OPENMP)

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>

#include "hetnn/base/team.h"

namespace hetnn::detail {
namespace {

// Threads that teams have beside their callers. Each caller has a team of its own; together they keep no more threads
// busy than there are CPUs.
std::atomic<int> in_teams = 0;

int reserve(int wanted) {
  static const int most = usable_cpus() - 1;
  int taken = in_teams.load(std::memory_order_relaxed);
  for (;;) {
    const int got = std::clamp(most - taken, 0, wanted);
    if (in_teams.compare_exchange_weak(taken, taken + got, std::memory_order_relaxed)) return got;
  }
}

}  // namespace

void run_on_openmp(int threads, RegionCall call, void* function) {
  const int more = reserve(threads - 1);
  std::optional<SpinBarrier> barrier;
  std::mutex mutex;
  std::exception_ptr error;
#pragma omp parallel num_threads(more + 1)
  {
    // OpenMP may give fewer: within a region of the caller's, or by its own limits.
#pragma omp single
    barrier.emplace(omp_get_num_threads());
    try {
      call(function, omp_get_thread_num(), *barrier);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }
  in_teams.fetch_sub(more, std::memory_order_relaxed);
  if (error) std::rethrow_exception(error);
}

}  // namespace hetnn::detail

#endif
