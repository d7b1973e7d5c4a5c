// What a visit to a device ends with.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

#include "hetnn/base/stop.h"

namespace hetnn::runtime {

/// Set once by one thread, with an error or without, and waited for by any: spinning for a bounded time, then asleep.
class Event {
 public:
  void set();
  void fail(std::exception_ptr error) {
    error_ = std::move(error);
    set();
  }
  /// Returns once it is set, or rethrows the error; what was written before by who set it is visible after. Polls for
  /// `stop`, which may be null, where that is this thread's task.
  void wait(const Stop* stop = nullptr) const;
  /// Ready to be set again; nobody may be waiting.
  void clear() {
    error_ = nullptr;
    state_.store(kUnset, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kUnset = 0, kSlept = 1, kSet = 2;  // slept: unset, and somebody may be asleep
  bool is_set() const { return state_.load(std::memory_order_acquire) == kSet; }

  mutable std::atomic<uint32_t> state_{kUnset};
  std::exception_ptr error_;
};

}  // namespace hetnn::runtime
