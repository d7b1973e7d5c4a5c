// Threads that work at once have cores of their own, and are free again after.
#include "hetnn/base/pinned_core.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sched.h>

#include <barrier>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "hetnn/base/parallel.h"

namespace hetnn {
namespace {

cpu_set_t mask() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
  return cpus;
}

// The one CPU that the calling thread may run on; -1: it may run on several.
int only_cpu() {
  const cpu_set_t cpus = mask();
  return CPU_COUNT(&cpus) == 1 ? sched_getcpu() : -1;
}

void work_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Where threads that work at once are kept, in each of the rounds.
std::vector<std::vector<int>> kept(int threads, int rounds) {
  std::vector<std::vector<int>> out(static_cast<size_t>(rounds), std::vector<int>(static_cast<size_t>(threads)));
  std::barrier together(threads);
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      PinnedCore core;
      for (std::vector<int>& round : out) {
        core.begin();
        round[static_cast<size_t>(t)] = only_cpu();
        together.arrive_and_wait();
        core.end();
        together.arrive_and_wait();
      }
    });
  }
  all.clear();
  return out;
}

TEST(PinnedCore, ThreadsThatWorkAtOnceHaveDifferentOnesWhileThereAreEnough) {
  const cpu_set_t cpus = mask();
  const int count = CPU_COUNT(&cpus);
  if (count < 2) GTEST_SKIP() << "on one core all threads share it";
  for (const int threads : {2, count, count + 1}) {
    for (const std::vector<int>& round : kept(threads, 20)) {
      std::multiset<int> places(round.begin(), round.end());
      EXPECT_EQ(places.count(-1), static_cast<size_t>(std::max(0, threads - count)));
      places.erase(-1);
      EXPECT_EQ(std::set<int>(places.begin(), places.end()).size(), places.size());
    }
  }
}

TEST(PinnedCore, AThreadThatIsReleasedMayRunEverywhere) {
  const cpu_set_t before = mask();
  {
    PinnedCore core;
    core.begin();
    core.release();
    cpu_set_t now = mask();
    EXPECT_TRUE(CPU_EQUAL(&now, &before));
    core.begin();
  }
  cpu_set_t now = mask();
  EXPECT_TRUE(CPU_EQUAL(&now, &before)) << "so does the end of its life, in the middle of its work";
  if (CPU_COUNT(&before) > 1) {
    PinnedCore other;
    other.begin();
    EXPECT_GE(only_cpu(), 0) << "nobody works on the core that was left";
  }
}

TEST(PinnedCore, ThreadsThatItsThreadMakesMayRunEverywhere) {
  const cpu_set_t before = mask();
  int seen = 0;
  std::mutex mutex;
  std::jthread([&] {
    PinnedCore inner;
    inner.begin();
    parallel_region(CPU_COUNT(&before) + 1, [&](int thread) {  // more than the pool can have from before
      const cpu_set_t cpus = mask();
      const std::lock_guard lock(mutex);
      if (thread > 0) seen += CPU_EQUAL(&cpus, &before) ? 1 : 0;
    });
  }).join();
  EXPECT_EQ(seen, CPU_COUNT(&before));
}

TEST(PinnedCore, ACoreThatOthersHaveIsNotKept) {
  const cpu_set_t before = mask();
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "on one core there is no choice";
  PinnedCore core;
  core.begin();
  work_for(std::chrono::milliseconds(5));
  core.end();
  core.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  core.end();
  cpu_set_t now = mask();
  EXPECT_TRUE(CPU_EQUAL(&now, &before));
}

}  // namespace
}  // namespace hetnn
#endif
