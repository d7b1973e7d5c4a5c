// Sums of tiles with elements that are not finite.
#include "hetnn/kernels/conv/winograd_non_finite.h"

#include <algorithm>
#include <limits>

#include "hetnn/kernels/gemm/panels.h"

namespace hetnn::kernels {

NonFiniteTiles::NonFiniteTiles(const WindowGeometry& g, int64_t side, int64_t in_pitch, int64_t in_stride,
                               int64_t out_stride)
    : g_(g),
      tiles_(g, side),
      in_pitch_(in_pitch),
      in_stride_(in_stride),
      out_stride_(out_stride),
      panels_(out_stride / kPanel),
      zeros_(static_cast<size_t>(in_stride) * sizeof(float)),
      micro_(&micro_table()),
      transforms_(&winograd_table(side, tiles_.are_lines())) {
  width_ = micro_->panels_for(tiles_.outputs(), panels_, 2);
}

bool NonFiniteTiles::transform(WinogradInputTile tile, float* room) const {
  const float* parts[kWinogradPoints];
  // One by one, so many take about as long as all of a tile's products.
  const int64_t most = tiles_.points() * g_.channels / 16;
  int64_t non_finite = 0;
  for (int64_t p = 0; p < tiles_.points(); ++p) {
    float* const part = room + p * in_stride_;
    non_finite += transforms_->finite_part(tile.pixels[p], g_.channels, part);
    if (non_finite > most) return false;
    parts[p] = part;
  }
  tile.pixels = parts;
  return transforms_->input(tile);
}

const float* NonFiniteTiles::sums_of(const WinogradOutputTile& tile, const Place& at, const std::byte* const* inputs,
                                     float* room) const {
  constexpr float kAny = std::numeric_limits<float>::infinity();
  const WinogradAxis &rows = tiles_.rows, &columns = tiles_.columns;
  float* const sums = room + tiles_.points() * in_stride_;
  WinogradOutputTile plain{};
  plain.from = tile.from;
  plain.point_stride = tile.point_stride;
  plain.out = sums;
  plain.out_row = tiles_.side * out_stride_;
  plain.out_pixel = out_stride_;
  plain.rows = tiles_.are_lines() ? 1 : tiles_.side;
  plain.cols = tiles_.side;
  plain.channels = tile.channels;
  plain.lo = -kAny;
  plain.hi = kAny;
  if (transforms_->output(plain) < tile.channels) return nullptr;
  const bool line = tiles_.are_lines();
  const int64_t tap_elems = g_.channels * kPanel;
  WinogradProducts products{};
  products.rows = plain.rows;
  products.cols = plain.cols;
  products.row_stride = tap_elems * g_.columns.kernel;
  products.column_stride = tap_elems;
  products.panel_stride = tap_elems * g_.taps();
  products.panels = panels_;
  products.sums = sums;
  products.sum_stride = out_stride_;
  const auto* weights = reinterpret_cast<const float*>(inputs[1] + transformed_bytes(g_, tiles_.side));
  for (int64_t r = 0; r < rows.inputs; ++r) {
    for (int64_t c = 0; c < columns.inputs; ++c) {
      const float* const pixel =
          pixel_at(inputs[0], at.n, at.y - rows.before + r * rows.step, at.x - columns.before + c * columns.step);
      products.r = line ? 0 : r;
      products.c = line ? r + c : c;
      const auto next = [&](int64_t channel) { return transforms_->next_non_finite(pixel, channel, g_.channels); };
      for (int64_t channel = next(0); channel < g_.channels; channel = next(channel + 1)) {
        products.x = pixel[channel];
        products.weights = weights + channel * kPanel;
        transforms_->add_products(products);
      }
    }
  }
  return sums;
}

// Whether a channel of the pixel is not a number, which makes that of all outputs that read it.
bool NonFiniteTiles::has_nan(const float* pixel) const {
  for (int64_t begin = 0; begin < g_.channels; begin += kPanel) {
    bool found = false;
    for (int64_t c = begin; c < std::min(begin + kPanel, g_.channels); ++c) found |= pixel[c] != pixel[c];
    if (found) return true;
  }
  return false;
}

// Whether every output of a tile reads such a pixel.
bool NonFiniteTiles::read_nan(const Place& at, const std::byte* input) const {
  const WinogradAxis &rows = tiles_.rows, &columns = tiles_.columns;
  uint64_t nan = 0;  // pixels, a byte a row of them
  for (int64_t row = 0; row < rows.inputs; ++row)
    for (int64_t col = 0; col < columns.inputs; ++col)
      if (has_nan(
              pixel_at(input, at.n, at.y - rows.before + row * rows.step, at.x - columns.before + col * columns.step)))
        nan |= 1ULL << (row * 8 + col);
  const uint64_t window = (columns.inputs == 1 ? 0x010101U : 0x070707U) & (rows.inputs == 1 ? 0xFFU : 0xFFFFFFU);
  for (int64_t row = 0; row < at.rows; ++row)
    for (int64_t col = 0; col < at.cols; ++col)
      if ((nan & window << (row * 8 + col)) == 0) return false;
  return true;
}

void NonFiniteTiles::sum_directly(const Place& at, int64_t channel, const std::byte* const* inputs, Sums sums) const {
  const int64_t outputs = tiles_.outputs();
  const WinogradAxis &rows = tiles_.rows, &columns = tiles_.columns;
  const auto* weights = reinterpret_cast<const float*>(inputs[1] + transformed_bytes(g_, tiles_.side));
  const std::byte* pixels[9 * kWinogradOutput * kWinogradOutput];
  const auto find_pixels_of = [&](int64_t tap) {
    for (int64_t output = 0; output < outputs; ++output) {
      const int64_t row = output / columns.outputs + tap / g_.columns.kernel;
      const int64_t col = output % columns.outputs + tap % g_.columns.kernel;
      pixels[tap * outputs + output] = reinterpret_cast<const std::byte*>(
          pixel_at(inputs[0], at.n, at.y - rows.before + row * rows.step, at.x - columns.before + col * columns.step));
    }
  };
  alignas(64) float room[kMaxTileElems];
  MicroTile part(room);
  part.rows_stride = outputs;
  part.ld_out = sums.stride;
  part.panel_stride = g_.taps() * g_.channels * kPanel;
  // Where nothing is finite, a few products tell: sums of infinities of both signs are none, whatever follows.
  constexpr int64_t kFew = 16;
  const int64_t middle = g_.taps() / 2;
  part.taps = 1;
  part.k = std::min(g_.channels, kFew);
  find_pixels_of(middle);
  sum_tile(part, pixels + middle * outputs, weights + middle * g_.channels * kPanel, channel, sums);
  if (are_nan(at, sums, channel)) return;
  if (read_nan(at, inputs[0])) {
    for (int64_t output = 0; output < outputs; ++output)
      std::fill_n(sums.of(output) + channel, out_stride_ - channel, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  for (int64_t tap = 0; tap < g_.taps(); ++tap) find_pixels_of(tap);
  part.taps = g_.taps();
  part.k = g_.channels;
  sum_tile(part, pixels, weights, channel, sums);
}

// Whether all sums of a tile that are asked for are, for the channels from one on.
bool NonFiniteTiles::are_nan(const Place& at, Sums sums, int64_t channel) const {
  for (int64_t row = 0; row < at.rows; ++row) {
    for (int64_t col = 0; col < at.cols; ++col) {
      const float* of = sums.of(row * tiles_.columns.outputs + col);
      bool number = false;
      for (int64_t c = channel; c < g_.out_channels; ++c) number |= of[c] == of[c];
      if (number) return false;
    }
  }
  return true;
}

// The products of a tile's pixels.
void NonFiniteTiles::sum_tile(MicroTile& part, const std::byte* const* pixels, const float* weights, int64_t channel,
                              Sums sums) const {
  const int64_t outputs = tiles_.outputs();
  for (int64_t panel = channel / kPanel; panel < panels_; panel += width_) {
    const auto width = static_cast<int>(std::min<int64_t>(width_, panels_ - panel));
    part.cols = width * kPanel;
    part.panel = weights + panel * part.panel_stride;
    part.prefetch = part.panel;
    const int64_t most = std::min<int64_t>(micro_->max_rows[width], 8);
    for (int64_t begin = 0; begin < outputs; begin += most) {
      part.rows = pixels + begin;
      part.out = sums.of(begin) + panel * kPanel;
      micro_->run[width][std::min(most, outputs - begin)](part);
    }
  }
}

}  // namespace hetnn::kernels
