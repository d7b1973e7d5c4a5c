// The transforms of Winograd F(4x4, 3x3), F(4, 3) and F(2x2, 3x3), vectorized over channels.
//
// Of four outputs the interpolation points are 0, +-a, +-b and infinity with a = 3/4, b = 3/2: as cheap as the usual
// +-1, +-2 and two to four times more accurate in float (Toom-Cook: Winograd 1980; choice of points: Barabasz et al.,
// arXiv 1803.10986). Of two they are 0, +-1 and infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace hetnn::kernels {

inline constexpr int kWinogradOutput = 4;  // outputs per side of the larger tiles,
inline constexpr int kWinogradInput = 6;   // and inputs
inline constexpr int kWinogradPoints = kWinogradInput * kWinogradInput;

inline constexpr double kWinogradA = 0.75;
inline constexpr double kWinogradB = 1.5;

/// to[(i * 6 + j) * point_stride + c] = (B^T d B)[i][j] for every channel c; d[i][j] = pixels[i * 6 + j][c]. Of a line
/// there is one row, (B^T d)[j]; of tiles of two outputs a side 6 is 4, and 4 is 2.
struct WinogradInputTile {
  const float* const* pixels;
  const float* const* next;  // those of the next tile, to be brought near; or null
  float* to;
  int64_t point_stride;
  int64_t channels;
};

/// The outputs (A^T m A)[i][j] for i < rows, j < cols of one tile, with m[i][j] = from[(i * 6 + j) * point_stride + c];
/// or those sums themselves, from[(i * 4 + j) * point_stride + c]. Of a line there is one row, (A^T m)[j].
struct WinogradOutputTile {
  const float* from;
  int64_t point_stride;
  const float* bias;    // or null
  const float* addend;  // its multiple by addend_scale is added, laid out as `out` with its own strides; or null
  int64_t addend_row, addend_pixel;
  float addend_scale;
  const float* slopes;  // what is not above zero is multiplied by these, slope_step 0 or 1 elements apart; or null
  int64_t slope_step;
  float* out;
  int64_t out_row, out_pixel;  // elements between rows and pixels
  int64_t rows, cols;
  int64_t channels;
  float lo, hi;
};

/// Elements of a tile's inputs: of pixels[point] the channels behind `channel` that have a bit.
struct WinogradElements {
  int32_t point, channel;
  uint64_t lanes;

  /// f(channel) for each.
  template <typename F>
  void for_each(const F& f) const {
    for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) f(channel + std::countr_zero(rest));
  }
};

/// sums[(i * cols + j) * sum_stride + 16 * p + k] += x * weights[p * panel_stride + (r - i) * row_stride +
/// (c - j) * column_stride + 16 * channel + k] for each of some inputs x = pixels[r * (cols + 2) + c][channel] of a
/// tile, of a line r = 0, for every output i, j whose window holds it, and for the 16 columns k of so many panels p.
struct WinogradProducts {
  const float* const* pixels;
  const WinogradElements* elements;  // by points
  int64_t count;
  int64_t rows, cols;  // of the tile's outputs
  const float* weights;
  int64_t row_stride, column_stride, panel_stride, panels;
  float* sums;
  int64_t sum_stride;
};

/// to[(i * 4 + j) * point_stride + e] = (G w G^T)[i][j] for e < elems, with w[r][c] = from[(r * 3 + c) * tap_stride +
/// e], of two outputs a side.
struct WinogradWeights {
  const float* from;
  int64_t tap_stride, elems;  // a multiple of 16
  float* to;
  int64_t point_stride;
};

struct WinogradTable {
  /// Whether all that is written is finite.
  bool (*input)(const WinogradInputTile&);
  /// As far as all m of a vector of channels are finite: the channel up to which outputs are written. An m that is not
  /// finite would reach outputs whose windows do not.
  int64_t (*output)(const WinogradOutputTile&);
  /// The same of sums, from `channel` on.
  void (*output_of_sums)(const WinogradOutputTile&, int64_t channel);
  /// Those of a tile's inputs that are not finite, by points: how many entries they take; -1 where they are more than
  /// `most`.
  int64_t (*find_non_finite)(const float* const* pixels, int64_t points, int64_t channels, WinogradElements* found,
                             int64_t most);
  void (*add_products)(const WinogradProducts&);
  /// Of tiles of two outputs a side, whatever the table's own are.
  void (*weights)(const WinogradWeights&);
};

/// Of tiles of so many outputs a side, 4 or 2; lines have 4.
const WinogradTable& winograd_table(int64_t side, bool lines);

}  // namespace hetnn::kernels
