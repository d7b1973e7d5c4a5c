// The process's own threads: helpers that are made when first wanted and wait for the next region.
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/base/pinned_core.h"
#include "hetnn/base/team.h"

#if defined(__linux__)
#include <pthread.h>
#endif

namespace hetnn::detail {
namespace {

// A helper waits for its next region for some 0.3 to 1 ms before it sleeps: a network that is run again and again finds
// it awake, since waking a thread takes as long as a small network runs.
constexpr int kIdleSpins = 20000;

using Clock = Contention::Clock;

// How often a thread lost its core since it was last asked.
class LostCores {
 public:
  bool any() {
    const int64_t before = std::exchange(known_, lost_cores());
    return known_ != before;
  }

 private:
  int64_t known_ = lost_cores();
};

// What the threads of one region run; it lives on the caller's stack.
struct Region {
  RegionCall call;
  void* function;
  SpinBarrier barrier;
  std::atomic<bool> caller_waits{false};
  std::atomic<int> lost = 0;  // threads that lost their core, where somebody waited
  std::mutex mutex = {};
  std::exception_ptr error = {};

  void run(int thread) {
    try {
      call(function, thread, barrier);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }
};

// A thread of the pool. Whoever takes it sets a region and wakes it; it is free again once busy is 0.
struct Helper {
  std::atomic<uint32_t> busy{0};
  Region* region = nullptr;
  int thread = 0;
  Helper* next = nullptr;  // idle with it, or taken with it

  [[noreturn]] void serve() {
    LostCores cores;
    for (;;) {
      if (wait_while_equal(busy, 0U, kIdleSpins) > Clock::duration(0))
        cores.any();  // what was lost while idle does not count
      region->run(thread);
      if (region->barrier.waited() > Clock::duration(0) || region->caller_waits.load(std::memory_order_relaxed))
        region->lost.fetch_add(cores.any() ? 1 : 0, std::memory_order_relaxed);
      // The caller may leave as soon as it sees this, so nothing of the region is touched after.
      busy.store(0, std::memory_order_release);
      busy.notify_all();
    }
  }
};

// Helpers are made when they are first wanted, and stay.
class Pool {
 public:
  Contention contention;

  // A list of `wanted` idle helpers, or of fewer: those there are, and new ones as long as there are less than CPUs
  // besides the caller's, or however many it takes when `all` are needed.
  Helper* take(int wanted, bool all) {
    const std::lock_guard lock(mutex_);
    Helper* taken = nullptr;
    for (; wanted > 0; --wanted) {
      if (!idle_ && (all || made_ < most_)) make();
      if (!idle_) break;  // or the system gives no more
      Helper* helper = idle_;
      idle_ = helper->next;
      helper->next = taken;
      taken = helper;
    }
    return taken;
  }
  void give_back(Helper* taken) noexcept {
    const std::lock_guard lock(mutex_);
    while (taken) {
      Helper* next = taken->next;
      taken->next = idle_;
      idle_ = taken;
      taken = next;
    }
  }

 private:
  // One more, if the system gives it.
  void make() {
    try {
      auto helper = std::make_unique<Helper>();
      PinnedCore::release_mine();
      std::thread([made = helper.get()] { made->serve(); }).detach();
      helper->next = idle_;
      idle_ = helper.release();
      ++made_;
    } catch (const std::exception&) {  // of memory or of the system
    }
  }

  std::mutex mutex_;
  Helper* idle_ = nullptr;
  int made_ = 0;
  const int most_ = usable_cpus() - 1;
};

// Threads do not survive a fork: a forked child, such as a worker of a process pool, starts a pool of its own. Pools
// are never freed, because helpers sleep in them until the process ends.
std::atomic<Pool*> current_pool{nullptr};
#if defined(__linux__)
const int at_fork = pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr, std::memory_order_relaxed); });
#endif

Pool& pool() {
#if defined(__linux__)
  static_cast<void>(at_fork);
#endif
  if (Pool* made = current_pool.load(std::memory_order_acquire)) return *made;
  auto fresh = std::make_unique<Pool>();
  Pool* other = nullptr;
  if (current_pool.compare_exchange_strong(other, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *other;
}

}  // namespace

void run_on_pool(int threads, bool all, RegionCall call, void* function) {
  const Clock::time_point begin = Clock::now();
  Helper* const helpers = pool().take(all ? threads - 1 : pool().contention.worthwhile(threads, begin) - 1, all);
  int taken = 0;
  for (Helper* helper = helpers; helper; helper = helper->next) helper->thread = ++taken;
  if (all && taken < threads - 1) {
    pool().give_back(helpers);
    throw DoesNotFit(text("the system gives this process ", taken, " more threads; ", threads - 1,
                          " are needed. Ask for fewer, or raise its limit."));
  }
  Region region{call, function, SpinBarrier(taken + 1)};
  for (Helper* helper = helpers; helper; helper = helper->next) {
    helper->region = &region;
    helper->busy.store(1, std::memory_order_release);
    helper->busy.notify_all();
  }
  region.run(0);
  Clock::duration waited{};
  for (Helper* helper = helpers; helper; helper = helper->next) {
    if (spin_until([&] { return helper->busy.load(std::memory_order_acquire) == 0; })) continue;
    region.caller_waits.store(true, std::memory_order_relaxed);
    waited += wait_while_equal(helper->busy, 1U);
  }
  waited += region.barrier.waited();
  if (waited > Clock::duration(0)) {
    thread_local LostCores cores;
    const Clock::time_point now = Clock::now();
    const int lost = region.lost.load(std::memory_order_relaxed) + (cores.any() ? 1 : 0);
    if (lost > 0) pool().contention.report(lost, taken + 1, waited, now - begin, now);
  }
  pool().give_back(helpers);
  if (region.error) std::rethrow_exception(region.error);
}

}  // namespace hetnn::detail
