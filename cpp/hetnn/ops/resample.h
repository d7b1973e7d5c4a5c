// Resampling along an axis, said once: where an entry of the result lies in the input, and which entries it reads with
// which weights. For the meanings and kernels of operators and, as tables of weights, for importers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hetnn::ops {

/// What an entry gives to a place that is so far `apart`: linearly, or by Keys' kernel with the coefficient `a`, of
/// which four entries are not nothing.
template <typename R>
R resampling_weight(bool cubic, R apart, R a) {
  const R x = std::abs(apart);
  if (!cubic) return std::max(1 - x, R(0));
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : R(0);
}

/// Row-major: what each entry of the input gives to each of the result, [results, entries].
template <typename R>
struct Shares {
  int64_t entries;
  std::vector<R> values;
};

// As ONNX says it.

/// An axis of `size` entries with `goal` of them instead. `scale`: results per entry. `length`: of the result, as far
/// as corners are concerned: goal, or scale size, which need not be whole. The region is where it is read, in parts of
/// it. `by_scale`: a scale was given, in f32, and f32 says which entry is nearest.
struct ResampledAxis {
  int64_t size, goal;
  double scale, length;
  double begin = 0, end = 1;
  bool by_scale = false;
};

/// Names as resampling_fault lists them, and what weights depend on.
struct Resampling {
  std::string_view mode, places, rounding = "round_prefer_floor", policy = "stretch";
  bool antialias = false, exclude_outside = false;
  double cubic_coefficient = -0.75;
};
/// Which name is unknown, and those there are; empty where each is known.
std::string resampling_fault(const Resampling& how);

/// What an entry of the result reads: entries from `first` on, those beyond the ends being the last ones. Without
/// weights it lies outside of the region.
struct ResampledEntry {
  int64_t first;
  std::vector<double> weights;
};
ResampledEntry resampled_entry(const Resampling& how, const ResampledAxis& axis, int64_t at);

/// The same for all entries of a result without a region.
Shares<double> resampling_shares(const Resampling& how, const ResampledAxis& axis);

// As torch computes it, in the type R.

/// Where entries of a result of `out` lie on an axis of `in`: by the inverse of the given scale, else (0) by the ratio
/// of the sizes; or so that the corners lie on each other.
template <typename R>
class TorchPlaces {
 public:
  TorchPlaces(int64_t in, int64_t out, double scale, bool align_corners)
      : step_(align_corners ? (out > 1 ? ratio(in - 1, out - 1) : R(0))
              : scale > 0   ? static_cast<R>(1 / scale)
                            : ratio(in, out)),
        aligned_(align_corners) {}
  R step() const { return step_; }
  R operator()(int64_t at) const {
    const R half = aligned_ ? R(0) : R(0.5);
    return step_ * (static_cast<R>(at) + half) - half;
  }

 private:
  static R ratio(int64_t in, int64_t out) { return static_cast<R>(static_cast<double>(in) / static_cast<double>(out)); }
  R step_;
  bool aligned_;
};

/// The entry before each place of a result; single precision decides ties. An axis that a scale leaves as long as it
/// is, or makes twice as long, is copied or doubled, whatever the scale.
std::vector<int64_t> nearest_before(int64_t in, int64_t out, double scale);

/// The two entries around a place. An axis that a scale leaves as long as it is is copied.
struct LinearTap {
  int64_t low, high;
  float weight;  // of high
};
std::vector<LinearTap> linear_taps(int64_t in, int64_t out, double scale, bool align_corners);

/// Bicubic interpolation along one axis.
template <typename R>
Shares<R> cubic_shares(int64_t in, int64_t out, double scale, bool align_corners);

/// A kernel as wide as an entry of the result, its values summing to 1.
Shares<float> antialiased_shares(int64_t in, int64_t out, double scale, bool align_corners, bool cubic);

}  // namespace hetnn::ops
