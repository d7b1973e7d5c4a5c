// Steps of linear algebra, for every instruction set that they are compiled for.
#include "hetnn/ops/linalg/dense.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace hetnn::ops {
namespace {

using Columns = std::vector<double>;

// Sizes on both sides of those from which Eigen works in blocks, and none a multiple of a vector but one.
constexpr int64_t kSizes[] = {1, 2, 3, 7, 64, 131};

std::vector<const DenseSteps*> all_steps() {
  std::vector<const DenseSteps*> out{&baseline_steps()};
  if (avx2_steps()) out.push_back(avx2_steps());
  return out;
}

Columns random(int64_t size) {
  std::mt19937 bits(static_cast<uint32_t>(size));
  std::uniform_real_distribution<double> within(-1, 1);
  Columns out(static_cast<size_t>(size));
  for (double& value : out) value = within(bits);
  return out;
}

double at(const Columns& a, int64_t rows, int64_t row, int64_t column) {
  return a[static_cast<size_t>(column * rows + row)];
}

TEST(DenseSteps, LowerTimesUpperAreTheRowsInTheirOrder) {
  for (const DenseSteps* steps : all_steps()) {
    for (const int64_t n : kSizes) {
      const Columns a = random(n * n);
      Columns factors = a;
      std::vector<int64_t> order(static_cast<size_t>(n));
      steps->factor_lu(factors.data(), n, order.data());
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k <= std::min(i, j); ++k)
            sum += (k == i ? 1 : at(factors, n, i, k)) * at(factors, n, k, j);
          ASSERT_NEAR(sum, at(a, n, order[static_cast<size_t>(i)], j), 1e-12) << n << ": " << i << ", " << j;
          // Pivots are the largest.
          ASSERT_TRUE(i <= j || std::abs(at(factors, n, i, j)) <= 1) << n << ": " << i << ", " << j;
        }
      }
    }
  }
}

TEST(DenseSteps, WhatIsSolvedForGivesTheSides) {
  for (const DenseSteps* steps : all_steps()) {
    for (const int64_t n : kSizes) {
      for (const bool upper : {false, true}) {
        constexpr int64_t kSides = 5;
        Columns a = random(n * n);
        for (int64_t k = 0; k < n; ++k) a[static_cast<size_t>(k * n + k)] = static_cast<double>(n);
        const Columns sides = random(n * kSides);
        Columns x = sides;
        steps->solve_triangular(a.data(), n, x.data(), kSides, upper);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < kSides; ++j) {
            double sum = 0;
            for (int64_t k = upper ? i : 0; k < (upper ? n : i + 1); ++k) sum += at(a, n, i, k) * at(x, n, k, j);
            ASSERT_NEAR(sum, at(sides, n, i, j), 1e-12) << n << ": " << i << ", " << j;
          }
        }
      }
    }
  }
}

// The sums of the second and of the fourth powers of the singular values are those of the matrix.
TEST(DenseSteps, TwoDiagonalsHaveTheSingularValues) {
  for (const DenseSteps* steps : all_steps()) {
    for (const int64_t n : kSizes) {
      const int64_t rows = n + 3;
      const Columns a = random(rows * n);
      Columns diagonal(static_cast<size_t>(n)), above(static_cast<size_t>(n - 1));
      steps->bidiagonalize(a.data(), rows, n, diagonal.data(), above.data());
      double second = 0, fourth = 0, found_second = 0, found_fourth = 0;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double product = 0;
          for (int64_t k = 0; k < rows; ++k) product += at(a, rows, k, i) * at(a, rows, k, j);
          fourth += product * product;
          if (i == j) second += product;
        }
      }
      for (size_t k = 0; k < diagonal.size(); ++k) {
        const double over = k > 0 ? above[k - 1] : 0, square = diagonal[k] * diagonal[k] + over * over;
        const double beside = k > 0 ? diagonal[k - 1] * over : 0;
        found_second += square;
        found_fourth += square * square + 2 * beside * beside;
      }
      EXPECT_NEAR(found_second / second, 1, 1e-12) << n;
      EXPECT_NEAR(found_fourth / fourth, 1, 1e-12) << n;
    }
  }
}

}  // namespace
}  // namespace hetnn::ops
