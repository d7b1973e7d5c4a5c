// Counts of requests: what each kind of end adds, sums over processes, and both ways in which they are shown.
#include "hetnn/serve/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace hetnn::serve {
namespace {

using testing::HasSubstr;

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Counted some() {
  Counters counters;
  counters.answered(now_ns() - 3'000'000, 1'000'000, 500'000, 4);
  counters.refused(now_ns(), Outcome::unavailable);
  counters.executed(4, 500'000, {{"cpu", 250.0}, {"npu", 100.0}});
  return counters.counted();
}

TEST(Counters, EveryEndAddsToItsCounts) {
  const Counted counted = some();
  EXPECT_EQ(counted.outcomes, (std::array<int64_t, 5>{1, 0, 1, 0, 0}));
  EXPECT_EQ(counted.inferences, 4);
  EXPECT_GT(counted.last_ms, 0);
  const auto part = [&](Part each) { return counted.parts[static_cast<size_t>(each)]; };
  EXPECT_GE(part(Part::success).second, 3'000'000);
  EXPECT_EQ(part(Part::queue), Taken(1, 1'000'000));
  EXPECT_EQ(part(Part::compute_infer), Taken(1, 500'000));
  EXPECT_EQ(part(Part::compute_output).second, part(Part::success).second - 1'500'000);
  EXPECT_EQ(part(Part::fail).first, 1);
  EXPECT_EQ(counted.batches, (std::map<int64_t, Taken>{{4, {1, 500'000}}}));
  EXPECT_EQ(counted.queue.first[1], 1);  // at a bound: 1 ms lies within it
  EXPECT_EQ(counted.batch.first[2], 1);
  EXPECT_DOUBLE_EQ(counted.busy_s.at("cpu"), 250e-6);
}

TEST(Counters, SumsAreThoseOfBothAndTheLastTimeIsTheLatest) {
  Counted sum = some(), other = some();
  other.last_ms = sum.last_ms + 7;
  const int64_t latest = other.last_ms;
  sum.add(other);
  EXPECT_EQ(sum.inferences, 8);
  EXPECT_EQ(sum.last_ms, latest);
  EXPECT_EQ(sum.batches.at(4), Taken(2, 1'000'000));
  EXPECT_EQ(sum.outcomes[0], 2);
  EXPECT_EQ(sum.batch.first[2], 2);
  EXPECT_DOUBLE_EQ(sum.batch.second, 8);
  EXPECT_DOUBLE_EQ(sum.busy_s.at("npu"), 200e-6);
}

TEST(Counters, AreShownAsThePrometheusTextFormatWants) {
  Counted large = some();
  large.inferences = 0;
  const std::string text = prometheus({{{"a", "1"}, some()}, {{"b", "2"}, large}}, 3);
  EXPECT_THAT(text, HasSubstr("# TYPE hetnn_requests_total counter\n"
                              "hetnn_requests_total{model=\"a\",version=\"1\",outcome=\"success\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hetnn_requests_total{model=\"b\",version=\"2\",outcome=\"unavailable\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hetnn_batch_size_bucket{model=\"a\",version=\"1\",le=\"2\"} 0\n"
                              "hetnn_batch_size_bucket{model=\"a\",version=\"1\",le=\"4\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hetnn_batch_size_bucket{model=\"a\",version=\"1\",le=\"+Inf\"} 1\n"
                              "hetnn_batch_size_sum{model=\"a\",version=\"1\"} 4\n"
                              "hetnn_batch_size_count{model=\"a\",version=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hetnn_queue_seconds_bucket{model=\"a\",version=\"1\",le=\"0.0005\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE hetnn_pending gauge\nhetnn_pending 3\n"));
  EXPECT_THAT(text, HasSubstr("hetnn_device_busy_seconds_total{device=\"cpu\"} 0.0005\n"));
}

TEST(Counters, AreShownAsTheStatisticsExtensionWants) {
  const std::string text = statistics_json("a", "1", some());
  EXPECT_THAT(text, HasSubstr(R"("inference_count":4,"execution_count":1)"));
  EXPECT_THAT(text, HasSubstr(R"("queue":{"count":1,"ns":1000000})"));
  EXPECT_THAT(text, HasSubstr(R"("cache_miss":{"count":0,"ns":0})"));
  EXPECT_THAT(text, HasSubstr(R"("batch_stats":[{"batch_size":4,"compute_input":{"count":1,"ns":0},)"
                              R"("compute_infer":{"count":1,"ns":500000})"));
}

}  // namespace
}  // namespace hetnn::serve
