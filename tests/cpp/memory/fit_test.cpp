// The ladder of solvers: the exact search against brute force, proofs of infeasibility.
#include "hetnn/memory/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "expect_error.h"
#include "hetnn/memory/exact.h"
#include "hetnn/memory/validate.h"

namespace hetnn::memory {
namespace {

// The least peak over every assignment of offsets below `limit`, by trying all of them.
int64_t brute_force_peak(const std::vector<Buffer>& buffers, int64_t limit) {
  std::vector<int64_t> offsets(buffers.size());
  int64_t best = limit;
  std::function<void(size_t, int64_t)> place = [&](size_t k, int64_t peak) {
    if (peak >= best) return;
    if (k == buffers.size()) {
      best = peak;
      return;
    }
    for (int64_t at = 0; at + buffers[k].size_bytes < best; ++at) {
      bool free = true;
      for (size_t j = 0; j < k && free; ++j) {
        free = !conflict(buffers[j], buffers[k]) || at >= offsets[j] + buffers[j].size_bytes ||
               offsets[j] >= at + buffers[k].size_bytes;
      }
      if (!free) continue;
      offsets[k] = at;
      place(k + 1, std::max(peak, at + buffers[k].size_bytes));
    }
  };
  place(0, 0);
  return best;
}

TEST(Exact, AgreesWithBruteForceOnSmallProblems) {
  std::mt19937 random(5);
  auto draw = [&](int lo, int hi) { return static_cast<int64_t>(std::uniform_int_distribution<int>(lo, hi)(random)); };
  for (int round = 0; round < 400; ++round) {
    std::vector<Buffer> buffers(static_cast<size_t>(draw(3, 7)));
    int64_t total = 1;
    for (Buffer& b : buffers) {
      b.lower = draw(0, 7);
      b.upper = b.lower + draw(1, 4);
      b.size_bytes = draw(1, 6);
      total += b.size_bytes;
    }
    const int64_t best = brute_force_peak(buffers, total);
    std::vector<int> rank(buffers.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::shuffle(rank.begin(), rank.end(), random);
    const auto never = [] { return false; };
    const ConflictGraph graph(buffers, 1);
    Blame blame(graph.size());
    const ExactResult found = search_exact(buffers, graph, rank, best, INT64_MAX, blame, never);
    ASSERT_EQ(found.outcome, ExactOutcome::found) << "round " << round;
    ASSERT_EQ(validate(buffers, found.offsets, best), std::nullopt);
    ASSERT_EQ(search_exact(buffers, graph, rank, best - 1, INT64_MAX, blame, never).outcome, ExactOutcome::infeasible)
        << "round " << round;
  }
}

TEST(Exact, ProvesInfeasibleWhatTheBoundAllows) {
  // At most 7 bytes live at any moment, yet no assignment ends below 8.
  const std::vector<Buffer> buffers = {{3, 7, 3}, {6, 9, 3}, {1, 4, 2}, {0, 2, 3}, {2, 6, 2}, {1, 3, 2}, {0, 1, 3}};
  ASSERT_EQ(lower_bound_bytes(buffers), 7);
  ASSERT_EQ(brute_force_peak(buffers, 18), 8);
  const FitResult at_bound = fit(buffers, 7);
  EXPECT_FALSE(at_bound.feasible);
  EXPECT_TRUE(at_bound.proven_infeasible);
  EXPECT_TRUE(fit(buffers, 8).feasible);
}

TEST(Fit, PacksWithoutWasteWhatGreedyCannot) {
  // A full rectangle cut into pieces: 80 time steps, 32 bytes, every moment full.
  std::mt19937 random(3);
  std::vector<Buffer> buffers;
  std::function<void(int64_t, int64_t, int64_t)> cut = [&](int64_t lower, int64_t upper, int64_t size) {
    const bool by_time = upper - lower > 8 && (size < 6 || random() % 2);
    if (!by_time && size < 6) {
      buffers.push_back({lower, upper, size});
    } else if (by_time) {
      const int64_t at = lower + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(upper - lower - 1));
      cut(lower, at, size), cut(at, upper, size);
    } else {
      const int64_t at = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(size - 1));
      cut(lower, upper, at), cut(lower, upper, size - at);
    }
  };
  cut(0, 80, 32);
  ASSERT_GT(fit_greedy(buffers).peak_bytes, 32);
  const FitResult result = fit(buffers, 32, {.seconds = 200});
  EXPECT_TRUE(result.feasible);
  EXPECT_EQ(validate(buffers, result.fit.offsets, 32), std::nullopt);
  EXPECT_EQ(result.lower_bound_bytes, 32);
}

TEST(Fit, ProvesThatNothingFits) {
  const std::vector<Buffer> buffers = {{0, 2, 10}, {1, 3, 10}};
  const FitResult below_bound = fit(buffers, 19);
  EXPECT_FALSE(below_bound.feasible);
  EXPECT_TRUE(below_bound.proven_infeasible);
  EXPECT_EQ(below_bound.fit.peak_bytes, 20);
  EXPECT_TRUE(fit(buffers, 20).feasible);
}

TEST(Fit, HeuristicsAloneGiveASoundResult) {
  const std::vector<Buffer> buffers = {{0, 4, 3}, {2, 6, 4}, {5, 9, 3}, {0, 9, 2}, {3, 5, 1}, {6, 8, 4}};
  const FitResult result = fit(buffers, 1, {.heuristic_only = true});
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(validate(buffers, result.fit.offsets, result.fit.peak_bytes), std::nullopt);
  EXPECT_EQ(result.fit.peak_bytes, result.lower_bound_bytes);
  EXPECT_EQ(result.lower_bound_bytes, 10);
}

}  // namespace
}  // namespace hetnn::memory
