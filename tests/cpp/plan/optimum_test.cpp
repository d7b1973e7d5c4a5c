// The cost strategy against brute force, and depth and merge against their plain definitions.
#include <gtest/gtest.h>

#include "hetnn/plan/partition/strategies/instance.h"
#include "hetnn/plan/partition/strategies/partition.h"
#include "hetnn/plan/partition/strategies/strategies.h"
#include "reference_plans.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// The graph whose edge u -> v (u < v) is present when bit number k of `edges` is set, k counting all such pairs; node
/// v is supported by the accelerator when bit v of `support` is set.
Problem labelled_graph(int32_t size, uint32_t edges, uint32_t support, uint64_t seed) {
  Problem p;
  p.devices = {{"cpu", 0, false, -1}, {"npu", 0, false, -1}};
  p.set_links({1000, 2});
  uint64_t state = seed;
  const auto below = [&](uint64_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>((state >> 33) % n);
  };
  int32_t bit = 0;
  for (int32_t v = 0; v < size; ++v) {
    std::vector<int32_t> inputs;
    for (int32_t u = 0; u < v; ++u) {
      if ((edges >> bit++ & 1) != 0) inputs.push_back(u);
    }
    p.add_node("n" + std::to_string(v), inputs);
    p.time_of(v, 0) = 1 + below(12);
    if ((support >> v & 1) != 0) p.time_of(v, 1) = 1 + below(6);
    p.output_bytes.back() = 1000 * below(8);
  }
  return p;
}

TEST(Optimum, EveryLabelledGraphUpToFiveNodes) {
  for (int32_t size = 0; size <= 5; ++size) {
    for (uint32_t edges = 0; edges < (1U << (size * (size - 1) / 2)); ++edges) {
      for (uint32_t support = 0; support < (1U << size); ++support) {
        const Problem p = labelled_graph(size, edges, support, edges * 64ULL + support);
        ASSERT_NEAR(partition(p).cost_us, reference::brute_force_cost_us(p), 1e-6)
            << size << " " << edges << " " << support;
      }
    }
  }
}

TEST(Optimum, ASampleOfTheLabelledGraphsOfSixNodes) {
  for (uint32_t edges = 0; edges < (1U << 15); edges += 37) {
    for (uint32_t support = edges % 5; support < 64; support += 5) {
      const Problem p = labelled_graph(6, edges, support, edges * 64ULL + support);
      ASSERT_NEAR(partition(p).cost_us, reference::brute_force_cost_us(p), 1e-6) << edges << " " << support;
    }
  }
}

TEST(Optimum, RandomGraphsUpToFourteenNodesWithoutLaunches) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Problem p = reference::random_problem(seed, {2 + static_cast<int32_t>(seed % 13), 2, 0.25, 0, false});
    const PartitionResult result = partition(p);
    ASSERT_NEAR(result.cost_us, reference::brute_force_cost_us(p), 1e-6) << seed;
    ASSERT_NEAR(result.lower_bound_us, result.cost_us, 1e-6) << seed;
  }
}

TEST(Optimum, GapToTheOptimumWithLaunches) {
  double sum = 0;
  double worst = 0;
  constexpr int32_t kGraphs = 300;
  for (uint64_t seed = 1000; seed < 1000 + kGraphs; ++seed) {
    const Problem p = reference::random_problem(seed, {2 + static_cast<int32_t>(seed % 12), 2, 0.25, 0, true});
    const PartitionResult result = partition(p);
    const double optimum = reference::brute_force_cost_us(p);
    ASSERT_GE(result.cost_us, optimum - 1e-6) << seed;
    ASSERT_LE(result.lower_bound_us, optimum + 1e-6) << seed;
    sum += result.cost_us / optimum - 1;
    worst = std::max(worst, result.cost_us / optimum - 1);
  }
  EXPECT_LE(sum / kGraphs, 0.01);
  EXPECT_LE(worst, 0.10);
  RecordProperty("mean_gap", std::to_string(sum / kGraphs));
  RecordProperty("worst_gap", std::to_string(worst));
  std::cout << "gap to the optimum with launches: mean " << sum / kGraphs << ", worst " << worst << "\n";
}

TEST(PlainDefinitions, DepthAndMergeGiveWhatTheyGive) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const auto devices = static_cast<int32_t>(2 + seed % 3);
    const Problem p = reference::random_problem(seed, {1 + static_cast<int32_t>(seed % 37), devices, 0.3, 0, true});
    std::vector<PartitionNote> notes;
    const Instance instance = make_instance(p, validated_topology(p), {}, true, notes);
    ASSERT_EQ(instance.size, p.size());
    const std::vector<int32_t> colour = take_all_colours(instance);
    ASSERT_TRUE(reference::same_partition(depth_parts(instance, colour), reference::depth_parts(p, colour))) << seed;
    ASSERT_TRUE(reference::same_partition(merge_parts(instance, colour), reference::merge_parts(p, colour))) << seed;
    for (int32_t v = 0; v < p.size(); ++v) ASSERT_EQ(instance.node_of[index(v)], v);
  }
}

}  // namespace
}  // namespace hetnn::plan
