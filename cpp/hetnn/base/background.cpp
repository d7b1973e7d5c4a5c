// A pool of sleeping threads and a queue.
#include "hetnn/base/background.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/base/pinned_core.h"

#if defined(__linux__)
#include <pthread.h>
#endif

namespace hetnn {
namespace {

// More than CPUs, because jobs also wait: for devices, and for their turn.
constexpr int kThreadsPerCpu = 8;

class Background {
 public:
  void run(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (idle_ < static_cast<int>(jobs_.size()) && made_ < most_ && make()) return;
    if (made_ == 0) {
      jobs_.pop_back();
      throw DoesNotFit("the system gives this process no thread. Raise its limit, or run without overlap.");
    }
    wanted_.notify_one();  // or a busy thread takes the job later
  }

 private:
  // Whether the system gives another thread.
  bool make() {
    try {
      PinnedCore::release_mine();
      std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {
      return false;
    }
    ++made_;
    return true;
  }
  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (jobs_.empty()) {
        ++idle_;
        wanted_.wait(lock);
        --idle_;
      }
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::function<void()>> jobs_;
  int idle_ = 0, made_ = 0;
  const int most_ = std::max(16, kThreadsPerCpu* usable_cpus());
};

std::atomic<int> fork_count{0};
// Never freed: its threads sleep in it until the process ends, and a child has a fresh one.
std::atomic<Background*> current{nullptr};

#if defined(__linux__)
const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  fork_count.fetch_add(1, std::memory_order_relaxed);
  current.store(nullptr, std::memory_order_relaxed);
});
#endif

}  // namespace

void run_in_background(std::function<void()> job) {
  Background* background = current.load(std::memory_order_acquire);
  if (!background) {
    auto fresh = std::make_unique<Background>();
    if (current.compare_exchange_strong(background, fresh.get(), std::memory_order_acq_rel))
      background = fresh.release();
  }
  background->run(std::move(job));
}

int forks() {
#if defined(__linux__)
  static_cast<void>(at_fork);
#endif
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace hetnn
