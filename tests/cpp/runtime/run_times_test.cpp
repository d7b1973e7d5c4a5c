// Times of what loops repeat: one row a subprogram, however many rounds there were.
#include "hetnn/runtime/run_times.h"

#include <gtest/gtest.h>

namespace hetnn::runtime {
namespace {

TEST(BodyTimes, RoundsAreAddedUp) {
  RunTimes round;
  round.subprograms = {{"cpu.0", "cpu", 1, 4, 0, 0, 0, false, 2}, {"npu.1", "npu", 4, 9, 1, 100, 5, false, 5}};
  BodyTimes body{.loop = "loop"};
  body.add(round, 10, 9);
  round.subprograms[1].fallback = true;
  round.bodies = {{"inner/body npu.0", "npu", 2, 3, 0, 7, 1, false, 1}};  // which ran no round before
  body.add(round, 30, 11);
  EXPECT_EQ(body.took_us, 20);
  ASSERT_EQ(body.rows.size(), 3u);
  EXPECT_EQ(body.rows[0].start_us, 11);
  EXPECT_EQ(body.rows[0].finish_us, 34);
  EXPECT_EQ(body.rows[0].busy_us, 4);
  EXPECT_FALSE(body.rows[0].fallback);
  EXPECT_EQ(body.rows[1].cycles, 200);
  EXPECT_EQ(body.rows[1].queue_us, 2);
  EXPECT_EQ(body.rows[1].simulated_us, 10);
  EXPECT_TRUE(body.rows[1].fallback);
  EXPECT_EQ(body.rows[2].name, "inner/body npu.0");
  EXPECT_EQ(body.rows[2].start_us, 32);
  EXPECT_EQ(body.rows[2].finish_us, 33);
}

}  // namespace
}  // namespace hetnn::runtime
