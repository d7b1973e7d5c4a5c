// Whether the threads of a region had cores of late.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hetnn {

/// How often this thread has lost its core to another so far; 0 where the system does not say.
int64_t lost_cores();

/// How many threads are worth asking for. A thread without a core makes all others wait for a time slice, so after
/// that was seen fewer are asked for, for a while that grows as long as the cores stay taken. Short waits that are a
/// small part of the time, as for a server's own work between runs, cost less than fewer threads would. Any thread may
/// call.
class Contention {
 public:
  using Clock = std::chrono::steady_clock;

  /// 1 <= result <= most.
  int worthwhile(int most, Clock::time_point now) const;

  /// A region was waited for, for so long, because `lost` of its threads had no core.
  void report(int lost, Clock::duration waited, Clock::time_point now);

 private:
  std::atomic<int> fewer_{0};
  std::atomic<Clock::rep> until_{0};  // since the clock's epoch
  std::atomic<Clock::rep> pause_{0};  // the last one
  // Of the time that was waited, what is above a share of all time since.
  std::atomic<Clock::rep> waited_{0};
  std::atomic<Clock::rep> waited_at_{0};
};

}  // namespace hetnn
