// Steps and shares of long work, as whoever began it is told of them.
#include "hetnn/base/progress.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hetnn {
namespace {

using Rows = std::vector<std::pair<std::string, double>>;

TEST(Progress, StepsWithinAStepCountInItsShare) {
  Rows told;
  {
    const ProgressScope scope([&](std::string_view step, double done) { told.emplace_back(step, done); });
    { const ProgressStep first("first", 0, 0.5); }
    const ProgressStep second("second", 0.5, 1);
    { const ProgressStep half("half", 0, 0.5); }
    const ProgressStep rest("rest", 0.5, 1);
  }
  EXPECT_EQ(told, (Rows{{"first", 0}, {"second", 0.5}, {"half", 0.5}, {"rest", 0.75}}));
}

TEST(Progress, PartsAreToldSeldom) {
  Rows told;
  const ProgressScope scope([&](std::string_view step, double done) { told.emplace_back(step, done); });
  const ProgressStep step("step", 0, 1);
  for (size_t k = 0; k < 1000; ++k) announce_parts(k, 1000);
  EXPECT_LT(told.size(), 50U);
}

TEST(Progress, NobodyNeedsListen) {
  const ProgressStep step("step", 0, 1);
  announce_parts(1, 2);
}

TEST(Progress, WhatIsThrownEndsTheWorkAndTheScopeAroundIsToldAgain) {
  Rows told;
  const ProgressScope outer([&](std::string_view step, double done) { told.emplace_back(step, done); });
  const auto work = [] {
    const ProgressScope inner([](std::string_view, double) { throw std::runtime_error("enough"); });
    const ProgressStep step("lost", 0, 1);
  };
  EXPECT_THROW(work(), std::runtime_error);
  { const ProgressStep step("kept", 0.25, 1); }
  EXPECT_EQ(told, (Rows{{"kept", 0.25}}));
}

}  // namespace
}  // namespace hetnn
