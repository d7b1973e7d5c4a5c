// Greedy placement and the validator, on numbers worked by hand and against each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"
#include "hetnn/memory/fit.h"
#include "hetnn/memory/validate.h"

namespace hetnn::memory {
namespace {

using testing::HasSubstr;

TEST(Greedy, ChainOfThreeReusesTheFirst) {
  // a: [0,2) 100, b: [1,3) 50, c: [2,4) 100; a and c never live together, so 150 bytes are enough.
  const std::vector<Buffer> buffers = {{0, 2, 100}, {1, 3, 50}, {2, 4, 100}};
  const Fit fit = fit_greedy(buffers);
  EXPECT_EQ(fit.peak_bytes, 150);
  EXPECT_EQ(fit.offsets, (std::vector<int64_t>{0, 100, 0}));
  EXPECT_EQ(lower_bound_bytes(buffers), 150);
}

TEST(Greedy, AlignmentRoundsSizesAndOffsets) {
  const std::vector<Buffer> buffers = {{0, 2, 1}, {0, 2, 1}, {0, 2, 65}};
  const Fit fit = fit_greedy(buffers, 64);
  EXPECT_EQ(fit.peak_bytes, 256);
  EXPECT_EQ(validate(buffers, fit.offsets, 256, 64), std::nullopt);
}

TEST(Greedy, EmptyAndZeroSizedBuffersConflictWithNothing) {
  EXPECT_EQ(fit_greedy({}).peak_bytes, 0);
  const Fit fit = fit_greedy({{0, 5, 8}, {2, 2, 8}, {0, 5, 0}});
  EXPECT_EQ(fit.offsets, (std::vector<int64_t>{0, 0, 0}));
}

TEST(Greedy, NamesWhatMakesNoSense) {
  EXPECT_ERROR(fit_greedy({{0, 1, -4}}), InvalidModel, "buffer 0: size must be at least 0; got -4");
  EXPECT_ERROR(fit_greedy({{3, 1, 4}}), InvalidModel, "ends at 1 before it begins at 3");
  EXPECT_ERROR(fit_greedy({{0, 1, int64_t{1} << 61}, {0, 1, int64_t{1} << 61}}), InvalidModel, "more than 2^62 bytes");
}

TEST(Greedy, RandomProblemsAreSoundAndAtMostTwiceTheBound) {
  std::mt19937 random(11);
  auto draw = [&](int lo, int hi) { return static_cast<int64_t>(std::uniform_int_distribution<int>(lo, hi)(random)); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Buffer> buffers(static_cast<size_t>(draw(1, 60)));
    for (Buffer& b : buffers) {
      b.lower = draw(0, 50);
      b.upper = b.lower + draw(0, 20);
      b.size_bytes = draw(0, 1000);
    }
    const int64_t alignment = draw(0, 1) ? 1 : 16;
    const Fit fit = fit_greedy(buffers, alignment);
    ASSERT_EQ(validate(buffers, fit.offsets, fit.peak_bytes, alignment), std::nullopt);
    ASSERT_GE(fit.peak_bytes, lower_bound_bytes(buffers, alignment));
    ASSERT_LE(fit.peak_bytes, 2 * lower_bound_bytes(buffers, alignment));
  }
}

TEST(Validate, FindsEachFault) {
  const std::vector<Buffer> buffers = {{0, 2, 16}, {1, 3, 16}};
  EXPECT_EQ(validate(buffers, {0, 16}, 32, 16), std::nullopt);
  EXPECT_THAT(*validate(buffers, {0}, 32), HasSubstr("2 buffers and 1 offsets"));
  EXPECT_THAT(*validate(buffers, {-16, 16}, 32), HasSubstr("below 0"));
  EXPECT_THAT(*validate(buffers, {0, 17}, 64, 16), HasSubstr("not a multiple of 16"));
  EXPECT_THAT(*validate(buffers, {0, 17}, 32), HasSubstr("ends at 33, above the capacity 32"));
  EXPECT_THAT(*validate(buffers, {0, 15}, 32), HasSubstr("overlap: [0, 16) and [15, 31)"));
}

}  // namespace
}  // namespace hetnn::memory
