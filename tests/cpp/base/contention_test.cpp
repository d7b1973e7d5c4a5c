// How many threads are asked for after some had no core.
#include "hetnn/base/contention.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hetnn {
namespace {

using namespace std::chrono_literals;

constexpr Contention::Clock::time_point kStart{1000s};

TEST(Contention, AsksForAllUntilCoresWereLostForMoreThanASlice) {
  Contention contention;
  EXPECT_EQ(contention.worthwhile(8, kStart), 8);
  contention.report(2, 8, 6 * 3ms, 4ms, kStart);
  EXPECT_EQ(contention.worthwhile(8, kStart + 1ms), 8) << "a time slice is lost now and then on an idle machine";
  contention.report(2, 8, 6 * 3ms, 4ms, kStart + 4ms);
  EXPECT_EQ(contention.worthwhile(8, kStart + 5ms), 6);
  EXPECT_EQ(contention.worthwhile(2, kStart + 5ms), 1) << "the caller runs always";
  EXPECT_EQ(contention.worthwhile(8, kStart + 24ms), 8);
}

TEST(Contention, WaitsLongerTheLongerTheCoresAreTaken) {
  Contention contention;
  auto now = kStart;
  contention.report(1, 2, 3ms, 3ms, now);
  std::vector<Contention::Clock::duration> pauses;
  for (int attempt = 0; attempt < 6; ++attempt) {
    now += 3ms;
    contention.report(1, 2, 3ms, 3ms, now);
    const auto begin = now;
    while (contention.worthwhile(2, now) == 1) now += 1ms;
    pauses.push_back(now - begin);
  }
  EXPECT_EQ(pauses, (std::vector<Contention::Clock::duration>{20ms, 40ms, 80ms, 160ms, 240ms, 240ms}));
  now += 1s;
  contention.report(1, 2, 30ms, 30ms, now);
  EXPECT_EQ(contention.worthwhile(2, now + 19ms), 1);
  EXPECT_EQ(contention.worthwhile(2, now + 20ms), 2) << "after an undisturbed time the first pause is short again";
}

// Of a region that a pause made late, only when it began counts: with long regions pauses grow as well.
TEST(Contention, CountsAttemptsFromTheirBegin) {
  Contention contention;
  auto now = kStart;
  std::vector<Contention::Clock::duration> pauses;
  for (int attempt = 0; attempt < 3; ++attempt) {
    now += 48ms;
    contention.report(2, 2, 90ms, 48ms, now);
    const auto begin = now;
    while (contention.worthwhile(2, now) == 1) now += 1ms;
    pauses.push_back(now - begin);
  }
  EXPECT_EQ(pauses, (std::vector<Contention::Clock::duration>{20ms, 40ms, 80ms}));
}

// Regions of two threads that wait for a part of them.
TEST(Contention, BearsWaitsAsLongAsFewerThreadsWouldBeSlower) {
  Contention contention;
  auto now = kStart;
  for (int region = 0; region < 100; ++region) {
    const auto took = region % 20 == 0 ? 18ms : 12ms;
    now += took;
    contention.report(1, 2, region % 20 == 0 ? 9ms : 3ms, took, now);
    ASSERT_EQ(contention.worthwhile(2, now), 2) << "at region " << region;
  }
  int borne = 0;
  while (contention.worthwhile(2, now) == 2 && borne < 100) {
    now += 12ms;
    contention.report(1, 2, 6ms, 12ms, now);
    ++borne;
  }
  EXPECT_LT(borne, 8) << "half of the time is lost: as slow as one thread, which leaves the core to others";
}

// One of 16 threads without a core: 15 do as much once all wait a sixteenth of the time.
TEST(Contention, BearsLessTheMoreThreadsWait) {
  Contention contention;
  auto now = kStart;
  int borne = 0;
  while (contention.worthwhile(16, now) == 16 && borne < 100) {
    now += 8ms;
    contention.report(1, 16, 15 * 1ms, 8ms, now);
    ++borne;
  }
  EXPECT_EQ(contention.worthwhile(16, now), 15);
  EXPECT_LT(borne, 20);
}

TEST(LostCores, AreCountedForTheThreadAlone) {
  const int64_t before = lost_cores();
  int64_t others = -1;
  std::thread([&] { others = lost_cores(); }).join();
  EXPECT_GE(before, 0);
  EXPECT_GE(others, 0);
  EXPECT_LE(others, 100) << "a thread that has just begun";
  EXPECT_GE(lost_cores(), before);
}

}  // namespace
}  // namespace hetnn
