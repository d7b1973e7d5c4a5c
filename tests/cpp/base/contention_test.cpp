// How many threads are asked for after some had no core.
#include "hetnn/base/contention.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hetnn {
namespace {

using namespace std::chrono_literals;

constexpr Contention::Clock::time_point kStart{1000s};

TEST(Contention, AsksForAllUntilACoreWasLost) {
  Contention contention;
  EXPECT_EQ(contention.worthwhile(8, kStart), 8);
  contention.report(2, 3ms, kStart);
  EXPECT_EQ(contention.worthwhile(8, kStart + 1ms), 6);
  EXPECT_EQ(contention.worthwhile(2, kStart + 1ms), 1) << "the caller runs always";
  EXPECT_EQ(contention.worthwhile(8, kStart + 21ms), 8);
}

TEST(Contention, WaitsLongerTheLongerTheCoresAreTaken) {
  Contention contention;
  auto now = kStart;
  std::vector<Contention::Clock::duration> pauses;
  for (int attempt = 0; attempt < 6; ++attempt) {
    contention.report(1, 3ms, now);
    const auto begin = now;
    while (contention.worthwhile(2, now) == 1) now += 1ms;
    pauses.push_back(now - begin);
    now += 3ms;
  }
  EXPECT_EQ(pauses, (std::vector<Contention::Clock::duration>{20ms, 40ms, 80ms, 160ms, 240ms, 240ms}));
  now += 1s;
  contention.report(1, 3ms, now);
  EXPECT_EQ(contention.worthwhile(2, now + 19ms), 1);
  EXPECT_EQ(contention.worthwhile(2, now + 20ms), 2) << "after an undisturbed time the first pause is short again";
}

TEST(Contention, BearsShortWaitsUntilTheyAreAGoodPartOfTheTime) {
  Contention contention;
  auto now = kStart;
  for (int region = 0; region < 100; ++region) {
    now += 4ms;
    contention.report(1, 700us, now);
    ASSERT_EQ(contention.worthwhile(2, now), 2) << "at region " << region;
  }
  int borne = 0;
  while (contention.worthwhile(2, now) == 2 && borne < 20) {
    now += 1ms;
    contention.report(1, 400us, now);
    ++borne;
  }
  EXPECT_LT(borne, 8) << "what is left counts as soon as it adds up to a time slice";
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
