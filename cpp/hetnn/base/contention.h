// Whether the threads of a region had cores of late.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hetnn {

/// How often this thread has lost its core to another so far; 0 where the system does not say.
int64_t lost_cores();

/// How many threads are worth asking for. A thread without a core makes all others wait for a time slice, so after
/// that was seen fewer are asked for, for a while that grows as long as the cores stay taken. Of n threads that do as
/// much as n - k alone once they wait k/n of the time, less is borne: a region on fewer threads is the dearer one. Any
/// thread may call.
class Contention {
 public:
  using Clock = std::chrono::steady_clock;

  /// 1 <= result <= most.
  int worthwhile(int most, Clock::time_point now) const;

  /// In a region that took so long `threads` waited for one another, added up, because `lost` of them had no core.
  void report(int lost, int threads, Clock::duration waited, Clock::duration took, Clock::time_point now);

 private:
  std::atomic<int> fewer_{0};
  std::atomic<Clock::rep> until_{0};  // since the clock's epoch
  std::atomic<Clock::rep> pause_{0};  // the last one
  // By how much regions of late were slower than they would have been on fewer threads.
  std::atomic<Clock::rep> lost_{0};
  std::atomic<Clock::rep> reported_at_{0};
};

}  // namespace hetnn
