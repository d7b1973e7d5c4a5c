// The time of work, worked by hand.
#include "hetnn/kernels/query/work.h"

#include <gtest/gtest.h>

namespace hetnn::kernels {
namespace {

// 16 multiply-adds, one of a vector, take a microsecond; a byte of any level takes as long on one core.
Machine simple() {
  Machine out;
  out.macs_per_us = {16, 32};
  for (CoreFigure& level : out.bytes_per_us) level = {1, 2};
  out.cache_bytes = {100, 1000, 10000};
  out.barrier_us = 0.5;
  return out;
}

TEST(Work, PartsOfOneSizeAreSharedWhole) {
  EXPECT_DOUBLE_EQ(time_us({.multiplies = 7, .grains = 7}, simple(), 1), 7);
  EXPECT_DOUBLE_EQ(time_us({.multiplies = 7, .grains = 7}, simple(), 2), 4);
  EXPECT_DOUBLE_EQ(time_us({.multiplies = 7, .grains = 1}, simple(), 2), 7);
  EXPECT_DOUBLE_EQ(time_us({.multiplies = 8, .grains = 8, .barriers = 2}, simple(), 2), 5);
  EXPECT_DOUBLE_EQ(time_us({.multiplies = 8, .grains = 8}, simple(), 9), 4) << "no more threads than were measured";
}

TEST(Work, FetchingOverlapsButForAnEighthAndWhatIsApart) {
  Work work = {.multiplies = 8, .grains = 2};
  work.fetch(24, 24, simple());
  EXPECT_DOUBLE_EQ(work.bytes[kFirstLevel], 24);
  EXPECT_DOUBLE_EQ(time_us(work, simple(), 1), 24 + 1);
  EXPECT_DOUBLE_EQ(time_us(work, simple(), 2), 12 + 0.5);
  work.apart = 4;
  EXPECT_DOUBLE_EQ(time_us(work, simple(), 2), 2 + 12 + 0.5);
}

TEST(Machine, BytesLieWhereTheyFitBesideOthers) {
  EXPECT_EQ(simple().level_of(50), kFirstLevel);
  EXPECT_EQ(simple().level_of(500), kSecondLevel);
  EXPECT_EQ(simple().level_of(2500), kThirdLevel);
  EXPECT_EQ(simple().level_of(2501), kMemory);
}

TEST(Machine, ASlowerOneTakesAllTheLonger) {
  Work work = {.multiplies = 8, .apart = 3, .grains = 2, .barriers = 3};
  work.fetch(24, 2501, simple());
  EXPECT_DOUBLE_EQ(time_us(work, simple().slowed(3), 2), 3 * time_us(work, simple(), 2));
}

}  // namespace
}  // namespace hetnn::kernels
