// Waiting without sleep, for a bounded time.
#pragma once

#include <thread>

namespace hetnn {

// About 20 us of pausing (a pause takes 140 cycles on recent Intel cores), longer than any gap between two threads that
// are in balance; then some yields before the thread sleeps, short enough that a descheduled partner does not cost a
// whole time slice of spinning.
constexpr int kSpins = 400;
constexpr int kYields = 64;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether `done()` came true while this thread kept its core.
template <typename Done>
bool spin_until(Done done, int spins = kSpins) {
  for (int i = 0; i < spins; ++i) {
    if (done()) return true;
    pause_cpu();
  }
  return done();
}

/// Whether `done()` came true while this thread offered its core to others.
template <typename Done>
bool yield_until(Done done) {
  for (int i = 0; i < kYields; ++i) {
    if (done()) return true;
    std::this_thread::yield();
  }
  return done();
}

}  // namespace hetnn
