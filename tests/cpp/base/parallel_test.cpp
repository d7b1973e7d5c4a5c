// Threads: barriers, regions on the process's pool, and what a forked child finds of it.
#include "hetnn/base/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.h"

namespace hetnn {
namespace {

// Every thread sees what all wrote before the barrier, round after round.
void meet(int threads, int rounds) {
  SpinBarrier barrier(threads);
  std::vector<int> written(static_cast<size_t>(threads), 0);
  std::atomic<int> wrong{0};
  parallel_region(threads, [&](int thread) {
    for (int round = 1; round <= rounds; ++round) {
      written[static_cast<size_t>(thread)] = round;
      barrier.arrive_and_wait();
      for (const int seen : written) wrong += seen != round;
      barrier.arrive_and_wait();
    }
  });
  EXPECT_EQ(wrong, 0) << threads << " threads";
}

TEST(SpinBarrier, MakesWritesVisibleToAll) {
  for (const int threads : {1, 2, 3, 8}) meet(threads, 300);
}

TEST(ParallelRegion, RunsEveryThreadOnce) {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> ran(static_cast<size_t>(threads));
    parallel_region(threads, [&](int thread) { ++ran[static_cast<size_t>(thread)]; });
    for (const std::atomic<int>& times : ran) EXPECT_EQ(times, 1);
  }
}

TEST(ParallelRegion, NestsAndServesManyCallers) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([] {
      parallel_region(2, [](int) {
        for (int k = 0; k < 20; ++k) meet(2, 5);
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ParallelRegion, RethrowsTheFirstErrorAndStaysUsable) {
  for (const int bad : {0, 1}) {
    EXPECT_THAT(
        [&] {
          parallel_region(2, [&](int thread) {
            if (thread == bad) throw std::runtime_error("thread " + std::to_string(bad));
          });
        },
        testing::ThrowsMessage<std::runtime_error>("thread " + std::to_string(bad)));
  }
  meet(2, 10);
}

TEST(ParallelRegionUpTo, TakesNoMoreThreadsThanItsCallerMay) {
  // The most of some regions: of one the cores may be taken.
  const auto most_threads = [] {
    int seen = 0;
    for (int round = 0; round < 200 && seen < std::min(2, usable_cpus()); ++round) {
      parallel_region_up_to(2, [&](int thread, const SpinBarrier& barrier) {
        if (thread == 0) seen = std::max(seen, barrier.threads());
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(seen < 2 ? 2 : 0));
    }
    return seen;
  };
  {
    const ThreadsAtMost outer(2);
    {
      const ThreadsAtMost inner(1);
      EXPECT_EQ(most_threads(), 1);
      std::thread([&] { EXPECT_EQ(most_threads(), std::min(2, usable_cpus())) << "another caller's"; }).join();
    }
    EXPECT_EQ(most_threads(), std::min(2, usable_cpus()));
  }
}

TEST(ParallelRegionUpTo, TakesNoMoreThreadsThanThereAreCpus) {
  // The first region's threads are held while a second one asks: it gets what is left, at least its caller.
  std::atomic<int> seen{0};
  parallel_region_up_to(usable_cpus(), [&](int thread, SpinBarrier& barrier) {
    EXPECT_LE(barrier.threads(), usable_cpus());
    barrier.arrive_and_wait();
    if (thread == 0) parallel_region_up_to(64, [&](int, SpinBarrier& inner) { seen = inner.threads(); });
    barrier.arrive_and_wait();
  });
  EXPECT_GE(seen, 1);
}

TEST(UsableThreads, AreNoMoreThanOpenMpIsAllowedWhereNothingElseIsSaid) {
  const int all = usable_cpus();
  const auto with = [](const char* openmp) {
    setenv("OMP_NUM_THREADS", openmp, 1);
    return usable_threads(0);
  };
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before ? before : "";
  EXPECT_EQ(with("1"), 1);
  EXPECT_EQ(with("1,4"), 1);
  EXPECT_EQ(with("4000"), all);
  EXPECT_EQ(usable_threads(all), all) << "asked for";
  for (const char* odd : {"", "0", "-2", "many", "2x"}) EXPECT_EQ(with(odd), all) << odd << " says nothing to OpenMP";
  setenv("HETNN_CPUS", "3", 1);
  EXPECT_EQ(with("1"), 3) << "hetnn's own word counts";
  unsetenv("HETNN_CPUS");
  before ? setenv("OMP_NUM_THREADS", kept.c_str(), 1) : unsetenv("OMP_NUM_THREADS");
}

TEST(UsableCpus, AreThoseThatTheEnvironmentSays) {
  const int all = usable_cpus();
  setenv("HETNN_CPUS", "7", 1);
  EXPECT_EQ(usable_cpus(), 7);
  EXPECT_EQ(usable_threads(0), 7);
  EXPECT_EQ(usable_threads(3), 3);
  for (const char* said : {"", "0", "-1", "2.5", "4097", "many", "99999999999999999999"}) {
    setenv("HETNN_CPUS", said, 1);
    EXPECT_ERROR(usable_cpus(), InvalidModel,
                 "HETNN_CPUS says how many CPUs to use, from 1 to 4096; got '" + std::string(said));
  }
  unsetenv("HETNN_CPUS");
  EXPECT_EQ(usable_cpus(), all);
}

// Runs in a child, which fails with another code or hangs until the alarm kills it.
int child_of_fork() {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int> ran{0};
    parallel_region(3, [&](int) { ++ran; });
    _exit(ran == 3 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(ParallelRegion, WorksInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer lets no child of a program with threads start any";
#endif
  EXPECT_EQ(child_of_fork(), 0);
  parallel_region(3, [](int) {});  // now there are helpers that the child does not have
  EXPECT_EQ(child_of_fork(), 0);
  meet(3, 10);
}

}  // namespace
}  // namespace hetnn
