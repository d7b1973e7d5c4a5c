// A thread that waits for what others do, and has little to do itself.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace hetnn {

/// The thread that makes it, which asks for short time slices. Left alone, Linux lets it wake up on the core where it
/// was last, behind the work of another thread there for up to a tick (4 ms), beside the core that the one who woke it
/// leaves idle.
class WaitingThread {
 public:
  WaitingThread();
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

  /// For as long as this lives, which is for a moment, the thread may run on the calling thread's core alone: there it
  /// is also afterwards, until it is moved. For those that are about to leave their core.
  class Here {
   public:
    explicit Here(WaitingThread& thread);
    ~Here();
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

   private:
    const std::lock_guard<std::mutex> alone_;
    const int id_;
    bool moved_ = false;
    std::array<uint64_t, 16> allowed_{};  // CPUs, bit by bit, before
  };

 private:
  std::mutex mutex_;  // of who moves it
  int id_ = 0;        // 0: threads are not moved here
};

}  // namespace hetnn
