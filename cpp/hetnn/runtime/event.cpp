// Waiting with a time limit, which std::atomic does not know.
#include "hetnn/runtime/event.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "hetnn/base/spin.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace hetnn::runtime {
namespace {

// Sleeps while the value is `old`, for so long at most; may wake earlier.
void sleep_while(const std::atomic<uint32_t>& value, uint32_t old, std::chrono::milliseconds most) {
#if defined(__linux__)
  const timespec limit{.tv_sec = most.count() / 1000, .tv_nsec = most.count() % 1000 * 1000000};
  syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, &limit, nullptr, 0);
#else
  if (value.load(std::memory_order_acquire) == old)
    std::this_thread::sleep_for(std::min(most, std::chrono::milliseconds(1)));
#endif
}

void wake_all([[maybe_unused]] const std::atomic<uint32_t>& value) {
#if defined(__linux__)
  syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
#endif
}

}  // namespace

void Event::set() {
  if (state_.exchange(kSet, std::memory_order_acq_rel) == kSlept) wake_all(state_);
}

void Event::wait(const Stop* stop) const {
  // As barriers do: a device that is in balance with another is waited for without sleep.
  if (!spin_until([&] { return is_set(); })) yield_until([&] { return is_set(); });
  const bool polls = stop && stop->polls_here();
  while (!is_set()) {
    uint32_t expected = kUnset;
    state_.compare_exchange_strong(expected, kSlept, std::memory_order_acq_rel);
    if (expected != kSet) sleep_while(state_, kSlept, polls ? Stop::kEvery : std::chrono::milliseconds(3600000));
    if (polls) static_cast<void>(stop->asked());
  }
  if (error_) std::rethrow_exception(error_);
}

}  // namespace hetnn::runtime
