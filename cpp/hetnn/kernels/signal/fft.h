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

/// Elements on the way from rows to lines and back, whole cache lines of the rows, and of which factors at most.
inline constexpr int64_t kFftTile = 16, kMostRowRadix = 5;

/// The floats that a transform works in besides its lines.
int64_t part_floats(const FftPlan& plan);

/// Whether FftRows may be given.
bool takes_rows(const FftPlan& plan);

/// Rows of pairs, as many as there are lanes, that a transform reads instead of lines, or writes; null: lines. `ld`:
/// floats from one row to the next.
struct FftRows {
  const float* from = nullptr;
  int64_t from_ld = 0;
  float* to = nullptr;
  int64_t to_ld = 0;
};

/// A line in each lane: element k is lanes() real parts and behind them lanes() imaginary parts.
struct FftOps {
  int64_t lanes;
  /// Transforms `lines`, and gives where the result lies: there or in `spare`, each of 2 · length · lanes floats,
  /// unless `rows` says so; `part` has part_floats.
  float* (*transform)(const FftPlan& plan, const FftRows& rows, float* lines, float* spare, float* part);
  /// Pairs that lie side by side as the lines do, `step` floats from one element to the next, and back.
  void (*read_pairs)(const float* x, int64_t step, int64_t count, float* lines);
  void (*write_pairs)(const float* lines, int64_t count, float* y, int64_t step);
  /// Lines of N real numbers as N / 2 pairs: from the transform of the pairs, by a plan of N / 2 with the roots of N,
  /// to elements 0 to N / 2 of the transform of the reals, and back from these, times `scale`.
  void (*join_halves)(const FftPlan& plan, const float* pairs, float* reals);
  void (*split_halves)(const FftPlan& plan, const float* reals, float scale, float* pairs);
  void (*scale)(float* values, int64_t count, float factor);
};

/// The most lanes of any instruction set.
inline constexpr int64_t kMostFftLanes = 16;

const FftOps& fft_ops();

}  // namespace hetnn::kernels
