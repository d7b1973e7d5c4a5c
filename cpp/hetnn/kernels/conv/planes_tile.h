// Tiles of convolutions that read an image's planes as they lie, vectorized over the pixels of a row.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// So many neighbouring pixels of a row are computed together.
inline constexpr int64_t kPlanesPixels = 48;

/// Some pixels of a row, one panel of outputs.
struct PlanesTile {
  const float* const* taps;  // of each product of a sum, where the factor of the row's first pixel stands
  int64_t products;
  const float* panel;   // [products][16]
  const float* bias;    // `outputs` elements, or null
  const float* slopes;  // sums below zero are multiplied by these, slope_step 0 or 1 elements apart; or null
  int64_t slope_step;
  bool bounded;  // clamped at the end
  float lo, hi;
  int64_t outputs;       // at most 16
  int64_t part_outputs;  // computed at once, at most most_outputs
  int64_t first_pixel;   // of the row
  int64_t pixels;        // at most kPlanesPixels; up to whole vectors behind them may be read
  float* sums;           // [16][kPlanesPixels], 64-byte aligned
};

struct PlanesFunctions {
  int64_t most_outputs;  // that registers hold the sums of
  /// The tile's results, as rows of pixels, in `sums`.
  void (*compute)(const PlanesTile&);
  /// The same as pixels `pitch` elements apart.
  void (*write)(const float* sums, int64_t outputs, int64_t pixels, float* out, int64_t pitch);
  /// to[p * to_ld + i] = line[i * 2 + p], i < count.
  void (*halve)(const float* line, int64_t count, float* to, int64_t to_ld);
};

/// For this machine.
const PlanesFunctions& planes_functions();

}  // namespace hetnn::kernels
