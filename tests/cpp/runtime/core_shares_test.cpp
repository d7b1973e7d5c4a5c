// How many cores runs get while others wait, and after.
#include "hetnn/runtime/core_shares.h"

#include <gtest/gtest.h>

namespace hetnn::runtime {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(CoreShares, WhoIsAloneHasAll) {
  CoreShares shares(4);
  for (int64_t ms = 0; ms < 1000; ms += 10) {
    EXPECT_EQ(shares.take(0, ms * kMs), 4);
    EXPECT_FALSE(shares.any_free());
    shares.give_back(4);
  }
}

TEST(CoreShares, ThoseThatWaitHaveAShareEach) {
  CoreShares shares(8);
  EXPECT_EQ(shares.take(2, 0), 2) << "of 8 for 3";
  EXPECT_EQ(shares.take(1, 0), 2);
  EXPECT_EQ(shares.take(0, 0), 2);
  EXPECT_TRUE(shares.any_free());
  EXPECT_EQ(shares.take(20, 0), 1);
  EXPECT_EQ(shares.take(20, 0), 1);
  EXPECT_FALSE(shares.any_free());
}

TEST(CoreShares, WhoIsAloneForAMomentHasWhatItWouldHaveAmongThoseOfLate) {
  CoreShares shares(2);
  EXPECT_EQ(shares.take(0, 0), 2) << "nobody else has come yet";
  shares.give_back(2);
  EXPECT_EQ(shares.take(1, 5 * kMs), 1);
  EXPECT_EQ(shares.take(0, 5 * kMs), 1);
  shares.give_back(1);
  shares.give_back(1);
  EXPECT_EQ(shares.take(0, 50 * kMs), 1);
  shares.give_back(1);
  EXPECT_EQ(shares.take(0, 105 * kMs), 1) << "not yet more than a tenth of a second after";
  shares.give_back(1);
  EXPECT_EQ(shares.take(0, 106 * kMs), 2);
}

TEST(CoreShares, ARunThatGoesOnCountsAsSomebodyWhoIsHere) {
  CoreShares shares(2);
  EXPECT_EQ(shares.take(1, 0), 1);
  for (int64_t ms = 0; ms < 1000; ms += 90) {
    EXPECT_EQ(shares.take(0, ms * kMs), 1) << ms;
    shares.give_back(1);
  }
}

TEST(CoreShares, ShortRunsHaveWhatIsFree) {
  CoreShares shares(4);
  EXPECT_EQ(shares.take(3, 0), 1);
  EXPECT_EQ(shares.take_free(), 3);
  EXPECT_FALSE(shares.any_free());
  shares.give_back(3);
  shares.give_back(1);
  EXPECT_EQ(shares.take_free(), 4);
}

}  // namespace
}  // namespace hetnn::runtime
