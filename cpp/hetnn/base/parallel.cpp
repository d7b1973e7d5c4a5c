// Threads: how many a process may use, and the barrier inside a region.
#include "hetnn/base/parallel.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/base/team.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace hetnn {
namespace {

constexpr int kMostCpus = 4096;

thread_local int most_threads = kMostCpus;

// A number of threads that begins a text, as `4` or OpenMP's `4,2` for regions within regions, up to `end_at`.
std::optional<int> leading_count(std::string_view digits, std::string_view end_at) {
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool ends = end == digits.data() + digits.size() || end_at.find(*end) != std::string_view::npos;
  if (error != std::errc() || !ends || count < 1 || count > kMostCpus) return std::nullopt;
  return count;
}

// What the environment says of how many to use.
std::optional<int> said_by(const char* variable, std::string_view what) {
  const char* said = std::getenv(variable);
  if (!said) return std::nullopt;
  if (const auto count = leading_count(said, "")) return count;
  throw InvalidModel(text("the environment's ", variable, " says how many ", what, " to use, from 1 to ", kMostCpus,
                          "; got '", said, "'. Set a number, or unset it for all that the process may use."));
}

}  // namespace

ThreadsAtMost::ThreadsAtMost(int threads) : before_(std::exchange(most_threads, threads)) {}

ThreadsAtMost::~ThreadsAtMost() { most_threads = before_; }

void SpinBarrier::arrive_and_wait() {
  if (threads_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  const auto time = detail::wait_while_equal(phase_, phase);
  if (time.count() > 0) waited_.fetch_add(time.count(), std::memory_order_relaxed);
}

int usable_cpus() {
  if (const auto cpus = said_by("HETNN_CPUS", "CPUs")) return *cpus;
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return std::max(1, CPU_COUNT(&mask));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int usable_threads(int requested) {
  const int cpus = usable_cpus();
  if (requested > 0) return std::min(requested, cpus);
  if (const auto threads = said_by("HETNN_NUM_THREADS", "threads")) return std::min(*threads, cpus);
  const char* openmp = std::getenv("OMP_NUM_THREADS");
  if (!openmp || std::getenv("HETNN_CPUS")) return cpus;
  return std::min(leading_count(openmp, ",").value_or(cpus), cpus);
}

namespace detail {

void parallel_region_impl(int threads, bool all, RegionCall call, void* function) {
  if (!all) threads = std::min(threads, most_threads);
  if (threads <= 1) {
    SpinBarrier alone(1);
    call(function, 0, alone);
    return;
  }
#if defined(HETNN_OPENMP)
  if (!all) {
    run_on_openmp(threads, call, function);
    return;
  }
#endif
  run_on_pool(threads, all, call, function);
}

}  // namespace detail

Share share_of(int64_t total, int thread, int threads, int64_t step) {
  if (threads == 1) return {0, total};
  const int64_t steps = (total + step - 1) / step;
  const int64_t begin = steps * thread / threads * step;
  const int64_t end = steps * (thread + 1) / threads * step;
  return {std::min(begin, total), std::min(end, total)};
}

}  // namespace hetnn
