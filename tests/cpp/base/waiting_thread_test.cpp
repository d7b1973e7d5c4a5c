// A waiting thread is held on the core of who has news for it, for a moment, and asks for short slices.
#include "hetnn/base/waiting_thread.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <memory>
#include <thread>

#include "hetnn/base/pinned_core.h"

namespace hetnn {
namespace {

cpu_set_t mask(pid_t id) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(sched_getaffinity(id, sizeof cpus, &cpus), 0);
  return cpus;
}

// What the kernel gives the calling thread at a stretch; 0: it does not say.
uint64_t slice_ns() {
  std::array<uint64_t, 6> attr{};
  const long result = syscall(SYS_sched_getattr, 0, attr.data(), sizeof attr, 0);
  return result == 0 ? attr[3] : 0;
}

// One that waits at a barrier for as long as a test needs it.
struct Waiting {
  std::barrier<> made{2}, done{2};
  std::unique_ptr<WaitingThread> waiting;
  pid_t id = 0;
  std::jthread thread{[this] {
    waiting = std::make_unique<WaitingThread>();
    id = static_cast<pid_t>(syscall(SYS_gettid));
    made.arrive_and_wait();
    done.arrive_and_wait();
  }};
};

TEST(WaitingThread, IsHeldWhereItsNewsComeFromAndFreeAgain) {
  Waiting other;
  other.made.arrive_and_wait();
  const cpu_set_t before = mask(other.id);
  for (int round = 0; round < 50; ++round) {
    PinnedCore core;
    core.begin();
    const int cpu = sched_getcpu();
    {
      const WaitingThread::Here here(*other.waiting);
      const cpu_set_t held = mask(other.id);
      EXPECT_EQ(CPU_COUNT(&held), 1);
      EXPECT_TRUE(CPU_ISSET(cpu, &held));
    }
    const cpu_set_t after = mask(other.id);
    EXPECT_TRUE(CPU_EQUAL(&after, &before));
  }
  other.done.arrive_and_wait();
}

TEST(WaitingThread, SeveralWithNewsAtOnceLeaveItFree) {
  Waiting other;
  other.made.arrive_and_wait();
  const cpu_set_t before = mask(other.id);
  {
    std::array<std::jthread, 4> threads;
    for (std::jthread& thread : threads) {
      thread = std::jthread([&] {
        PinnedCore core;
        for (int round = 0; round < 200; ++round) {
          core.begin();
          { const WaitingThread::Here here(*other.waiting); }
          core.end();
        }
      });
    }
  }
  const cpu_set_t after = mask(other.id);
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
  other.done.arrive_and_wait();
}

TEST(WaitingThread, OneThatHasEndedIsLeftAlone) {
  Waiting other;
  other.made.arrive_and_wait();
  other.done.arrive_and_wait();
  other.thread.join();
  const cpu_set_t before = mask(0);
  { const WaitingThread::Here here(*other.waiting); }
  const cpu_set_t after = mask(0);
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

TEST(WaitingThread, AsksForShortSlicesForItselfAlone) {
  if (slice_ns() == 0) GTEST_SKIP() << "this system has no slices to ask for";
  uint64_t own = 0, of_child = 0;
  std::jthread([&] {
    const WaitingThread waiting;
    own = slice_ns();
    std::jthread([&] { of_child = slice_ns(); }).join();
  }).join();
  EXPECT_EQ(own, 100'000u);
  EXPECT_GT(of_child, own);
}

}  // namespace
}  // namespace hetnn
#endif
