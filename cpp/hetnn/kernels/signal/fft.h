// Fast Fourier transforms of several lines side by side, vectorized.
#pragma once

#include <cstdint>
#include <vector>

namespace hetnn::kernels {

/// How lines of one length are transformed: y[k] = Σ x[n] exp(∓2πi n k / N), with + for the inverse, not divided by N.
struct FftPlan {
  int64_t length = 1;
  bool inverse = false;
  std::vector<int64_t> radices;  // of which the length is the product
  /// exp(∓2πi k / roots) as pairs, k < roots, of a multiple of the length.
  std::vector<float> roots;
  int64_t root_step = 1;  // from one root of the length to the next
};

/// `fine` times the length are the roots that the plan holds.
FftPlan plan_fft(int64_t length, bool inverse, int64_t fine = 1);

/// A line in each lane: element k is lanes() real parts and behind them lanes() imaginary parts.
struct FftOps {
  int64_t lanes;
  /// Transforms `lines`, and gives where the result lies: there or in `spare`, each of 2 · length · lanes floats;
  /// `part` has 4 · radix · lanes of the largest radix.
  float* (*transform)(const FftPlan& plan, float* lines, float* spare, float* part);
};

/// The most lanes of any instruction set.
inline constexpr int64_t kMostFftLanes = 16;

const FftOps& fft_ops();

}  // namespace hetnn::kernels
