// What a visit to a device ends with: set once, waited for by others.
#pragma once

#include <atomic>
#include <exception>

namespace hetnn::runtime {

/// Set by one thread, waited for by any.
class Event {
 public:
  void set() {
    state_.store(1, std::memory_order_release);
    state_.notify_all();
  }
  /// Set by an error, which every wait rethrows.
  void fail(std::exception_ptr error) {
    error_ = std::move(error);
    set();
  }
  void wait() const {
    state_.wait(0, std::memory_order_acquire);
    if (error_) std::rethrow_exception(error_);
  }
  /// Ready for the next visit; nobody may be waiting.
  void clear() {
    error_ = nullptr;
    state_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> state_{0};
  std::exception_ptr error_;
};

}  // namespace hetnn::runtime
