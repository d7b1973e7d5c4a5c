// Lifetimes in a partial order, by hand and against an independent check of random orders.
#include "hetnn/memory/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "hetnn/memory/fit.h"

namespace hetnn::memory {
namespace {

TEST(Liveness, ATotalOrderMeetsNowhereElse) {
  Liveness live({{}, {0}, {1}});
  for (int step = 0; step < 3; ++step) live.use(step, step, step);
  EXPECT_TRUE(live.total());
  EXPECT_TRUE(live.before(0, 2));
  EXPECT_EQ(live.lifetime(1, 64), (Buffer{1, 2, 64}));
  EXPECT_THAT(live.meetings({0, 1, 2}), testing::IsEmpty());
}

// 0 -> 1 -> 3 and 0 -> 2 -> 3: the buffers of steps 1 and 2 meet, though 1 stands before 2.
TEST(Liveness, BranchesMeet) {
  Liveness live({{}, {0}, {0}, {1, 2}});
  live.use(0, 0, 0);
  live.use(1, 1, 1);
  live.use(2, 1, 2);  // in another moment of the step
  live.use(3, 2, 3);
  live.use(4, 3, 4);
  EXPECT_FALSE(live.total());
  EXPECT_THAT(live.meetings({0, 1, 2, 3, 4}), testing::ElementsAre(testing::Pair(1, 3), testing::Pair(2, 3)));
  std::vector<Buffer> sized;
  for (int b = 0; b < 5; ++b) sized.push_back(live.lifetime(b, 64));
  EXPECT_EQ(fit_greedy(sized, 64).peak_bytes, 64);
  EXPECT_EQ(fit_greedy(sized, 64, live.meetings({0, 1, 2, 3, 4})).peak_bytes, 128);
}

// Any order in which the steps may run keeps buffers apart that share bytes.
TEST(Liveness, HoldsForEveryOrderOfRandomGraphs) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const int steps = 2 + static_cast<int>(random() % 7);
    std::vector<std::vector<int>> waits_for(static_cast<size_t>(steps));
    for (int k = 1; k < steps; ++k) {
      for (int e = 0; e < k; ++e) {
        if (random() % 3 == 0) waits_for[static_cast<size_t>(k)].push_back(e);
      }
    }
    // Buffer k is written by step k and read by those that wait for it.
    Liveness live(waits_for);
    for (int k = 0; k < steps; ++k) {
      for (int e : waits_for[static_cast<size_t>(k)]) live.use(e, k, k);
      live.use(k, k, k);
    }
    std::vector<int> ids(static_cast<size_t>(steps));
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<Buffer> buffers;
    for (int k : ids) buffers.push_back(live.lifetime(k, 1 + static_cast<int64_t>(random() % 5)));
    const Fit fit = fit_greedy(buffers, 1, live.meetings(ids));
    const auto share = [&](size_t a, size_t b) {
      return fit.offsets[a] < fit.offsets[b] + buffers[b].size_bytes &&
             fit.offsets[b] < fit.offsets[a] + buffers[a].size_bytes;
    };
    for (int trial = 0; trial < 20; ++trial) {
      // A random topological order; who holds a byte must be the writer that a reader expects.
      std::vector<int> order, left = ids;
      std::vector<bool> done(ids.size(), false);
      while (!left.empty()) {
        std::vector<int> ready;
        for (int k : left) {
          const auto& waits = waits_for[static_cast<size_t>(k)];
          if (std::all_of(waits.begin(), waits.end(), [&](int e) { return done[static_cast<size_t>(e)]; }))
            ready.push_back(k);
        }
        const int next = ready[random() % ready.size()];
        order.push_back(next);
        done[static_cast<size_t>(next)] = true;
        std::erase(left, next);
      }
      std::vector<bool> intact(ids.size(), false);
      for (int k : order) {
        for (int e : waits_for[static_cast<size_t>(k)]) ASSERT_TRUE(intact[static_cast<size_t>(e)]) << round;
        for (size_t other = 0; other < intact.size(); ++other) {
          if (share(static_cast<size_t>(k), other)) intact[other] = false;
        }
        intact[static_cast<size_t>(k)] = true;
      }
    }
  }
}

}  // namespace
}  // namespace hetnn::memory
