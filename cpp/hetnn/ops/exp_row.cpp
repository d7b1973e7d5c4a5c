// exp in loops that compilers turn into vectors.
#include "hetnn/ops/exp_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace hetnn::ops {
namespace {

constexpr double kLeast = -700;  // exp of it is far below f32's least

// x = n ln2 + r, |r| <= ln2 / 2, so exp(x) = 2^n exp(r / 8)^8, and exp(r / 8) by its Taylor polynomial.
double exp_within_range(double x) {
  constexpr double kShift = 0x1.8p52;  // leaves n in the low bits
  const double shifted = x * 0x1.71547652b82fep0 + kShift;
  const double n = shifted - kShift;
  const double r = x - n * 0x1.62e42fefa39efp-1;
  double p = 0x1p-21 / 5040;
  p = p * r + 0x1p-18 / 720;
  p = p * r + 0x1p-15 / 120;
  p = p * r + 0x1p-12 / 24;
  p = p * r + 0x1p-9 / 6;
  p = p * r + 0x1p-6 / 2;
  p = p * r + 0x1p-3;
  p = p * r + 1;
  p *= p;
  p *= p;
  p *= p;
  return p * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

// Of a row from `start`, in eight chains that are joined at the end.
template <typename Step>
double fold_row(std::span<const double> row, double start, Step step) {
  constexpr size_t kChains = 8;
  double chains[kChains];
  std::fill(chains, chains + kChains, start);
  size_t k = 0;
  for (; k + kChains <= row.size(); k += kChains)
    for (size_t c = 0; c < kChains; ++c) chains[c] = step(chains[c], row[k + c]);
  for (; k < row.size(); ++k) chains[k % kChains] = step(chains[k % kChains], row[k]);
  for (size_t c = 1; c < kChains; ++c) chains[0] = step(chains[0], chains[c]);
  return chains[0];
}

}  // namespace

double largest_of(std::span<const double> row) {
  return fold_row(row, row[0], [](double a, double b) { return b > a ? b : a; });
}

double exp_row(std::span<double> row, double largest, bool exact) {
  if (exact) {
    for (double& x : row) x = std::exp(x - largest);
  } else {
    // Two loops, because a choice within the second would keep it from becoming vectors.
    for (double& x : row) {
      const double shifted = x - largest;
      x = shifted < kLeast ? kLeast : shifted;
    }
    for (double& x : row) x = exp_within_range(x);
  }
  return fold_row(row, 0, [](double a, double b) { return a + b; });
}

}  // namespace hetnn::ops
