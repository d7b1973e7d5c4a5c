// Misspelt names find what was meant.
#include "hetnn/base/nearest_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetnn {
namespace {

TEST(NearestNames, CountsTheEditsBetweenTwoTexts) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("relu", ""), 4U);
  EXPECT_EQ(edit_distance("relu", "prelu"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("sitting", "kitten"), 3U);
}

TEST(NearestNames, OrdersByDistanceAndKeepsTheOrderOfTies) {
  EXPECT_THAT(nearest_names("rely", {"add", "relu", "prelu", "rels"}, 3),
              testing::ElementsAre("relu", "rels", "prelu"));
  EXPECT_THAT(nearest_names("rely", {"add"}, 3), testing::ElementsAre("add"));
  EXPECT_THAT(nearest_names("rely", {}, 3), testing::ElementsAre());
}

}  // namespace
}  // namespace hetnn
