// A core for a thread whose work is long and comes again and again.
#pragma once

#include <array>
#include <cstdint>

namespace hetnn {

/// Kept by one thread, from its first work on for as long as it has the core for itself. Threads of the process that
/// work at once have different ones while there are enough: left alone, Linux puts two that wake up shortly after one
/// another on one core, for many milliseconds, beside a core that is idle. And who has to run for a moment only goes
/// before the thread, which asks for long time slices: from Linux 6.12 on a shorter one goes first, and what each gets
/// in all stays as it is (`sched_runtime` of sched_setattr(2)). Other systems place threads by themselves.
class PinnedCore {
 public:
  PinnedCore() = default;
  ~PinnedCore() { release(); }
  PinnedCore(const PinnedCore&) = delete;
  PinnedCore& operator=(const PinnedCore&) = delete;

  /// The calling thread begins to work: on its core, or on another one if somebody works there.
  void begin();
  /// It has worked. It keeps the core unless others had that for a good part of the time.
  void end();
  /// It may run everywhere, as before its first work.
  void release();
  /// The same for the calling thread, which is about to make others: they begin where it may run.
  static void release_mine();

 private:
  bool keep(int cpu);

  int cpu_ = -1;                        // -1: none
  std::array<uint64_t, 16> allowed_{};  // CPUs, bit by bit, before it had one
  bool works_ = false;                  // on it
  bool patient_ = false;                // asks for long time slices
  int64_t begun_ns_ = 0, begun_cpu_ns_ = 0;
};

}  // namespace hetnn
