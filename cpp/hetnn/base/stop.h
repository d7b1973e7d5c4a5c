// What runs ask, between commands, whether to go on: somebody's request, a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "hetnn/base/error.h"

namespace hetnn {

/// Shared by one run and whoever may end it.
class Stop {
 public:
  using Clock = std::chrono::steady_clock;
  /// How often `poll` is called at most, and how soon waiting runs notice a request.
  static constexpr std::chrono::milliseconds kEvery{50};

  Stop() = default;
  explicit Stop(std::optional<Clock::time_point> deadline) : deadline_(deadline) {}
  /// The thread that makes it calls `poll` every now and then while it runs or waits.
  explicit Stop(std::function<void()> poll) : poll_(std::move(poll)), next_poll_(Clock::now() + kEvery) {}

  /// From any thread. The run ends with Cancelled.
  void request() { requested_.store(true, std::memory_order_relaxed); }
  const std::optional<Clock::time_point>& deadline() const { return deadline_; }
  /// Whether this thread must not sleep for long.
  bool polls_here() const { return poll_ && std::this_thread::get_id() == owner_; }

  /// Throws Cancelled after a request, Unavailable after the deadline.
  void check() const {
    if (polls_here()) poll();
    if (requested_.load(std::memory_order_relaxed)) throw Cancelled("the run was asked to stop.");
    if (deadline_ && Clock::now() >= *deadline_)
      throw Unavailable("the run's deadline passed before it ended. Allow more time, or run less at once.");
  }
  /// Whether check would throw.
  bool asked() const {
    if (polls_here()) poll();
    return requested_.load(std::memory_order_relaxed) || (deadline_ && Clock::now() >= *deadline_);
  }

 private:
  void poll() const {
    const auto now = Clock::now();
    if (now < next_poll_) return;
    poll_();
    next_poll_ = Clock::now() + kEvery;
  }

  std::atomic<bool> requested_{false};
  const std::optional<Clock::time_point> deadline_;
  const std::function<void()> poll_;
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable Clock::time_point next_poll_{};  // of the owner alone
};

}  // namespace hetnn
