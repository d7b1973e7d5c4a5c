// Sums of tiles with elements that are not finite.
#include "hetnn/kernels/conv/winograd_non_finite.h"

#include <algorithm>
#include <limits>
#include <utility>

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
      most_(tiles_.points() * g.channels / 16),
      zeros_(static_cast<size_t>(in_stride) * sizeof(float)),
      micro_(&micro_table()),
      transforms_(&winograd_table(side, tiles_.are_lines())) {
  width_ = micro_->panels_for(tiles_.outputs(), panels_, 2);
}

void NonFiniteTiles::find_pixels(const Place& at, const std::byte* input, const float** pixels) const {
  const WinogradAxis &rows = tiles_.rows, &columns = tiles_.columns;
  for (int64_t r = 0; r < rows.inputs; ++r) {
    const int64_t y = at.y - rows.before + r * rows.step;
    for (int64_t c = 0; c < columns.inputs; ++c) {
      const int64_t x = at.x - columns.before + c * columns.step;
      const bool inside = y >= 0 && y < g_.height && x >= 0 && x < g_.width;
      *pixels++ = inside ? reinterpret_cast<const float*>(input) + ((at.n * g_.height + y) * g_.width + x) * in_pitch_
                         : zeros_.as<float>();
    }
  }
}

bool NonFiniteTiles::transform(WinogradInputTile tile, float* room) const {
  WinogradElements* const elements = elements_in(room);
  const int64_t count = transforms_->find_non_finite(tile.pixels, tiles_.points(), g_.channels, elements, most_);
  if (count < 0) return false;
  const float* parts[kWinogradPoints];
  std::copy_n(tile.pixels, tiles_.points(), parts);
  for (const WinogradElements* e = elements; e < elements + count; ++e) {
    float* const part = room + e->point * in_stride_;
    if (std::exchange(parts[e->point], part) != part) std::copy_n(tile.pixels[e->point], g_.channels, part);
    e->for_each([part](int64_t channel) { part[channel] = 0; });
  }
  tile.pixels = parts;
  return transforms_->input(tile);
}

const float* NonFiniteTiles::sums_of(const WinogradOutputTile& tile, const Place& at, const std::byte* const* inputs,
                                     float* room) const {
  constexpr float kAny = std::numeric_limits<float>::infinity();
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
  const float* pixels[kWinogradPoints];
  find_pixels(at, inputs[0], pixels);
  WinogradElements* const elements = elements_in(room);
  const int64_t tap_elems = g_.channels * kPanel;
  WinogradProducts products{};
  products.pixels = pixels;
  products.elements = elements;
  products.count = transforms_->find_non_finite(pixels, tiles_.points(), g_.channels, elements, most_);
  products.rows = plain.rows;
  products.cols = plain.cols;
  products.row_stride = tap_elems * g_.columns.kernel;
  products.column_stride = tap_elems;
  products.panel_stride = tap_elems * g_.taps();
  products.panels = panels_;
  products.sums = sums;
  products.sum_stride = out_stride_;
  products.weights = reinterpret_cast<const float*>(inputs[1] + transformed_bytes(g_, tiles_.side));
  transforms_->add_products(products);
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
bool NonFiniteTiles::read_nan(const Place& at, const float* const* pixels) const {
  const WinogradAxis &rows = tiles_.rows, &columns = tiles_.columns;
  uint64_t nan = 0;  // pixels, a byte a row of them
  for (int64_t row = 0; row < rows.inputs; ++row)
    for (int64_t col = 0; col < columns.inputs; ++col)
      if (has_nan(*pixels++)) nan |= 1ULL << (row * 8 + col);
  const uint64_t window = (columns.inputs == 1 ? 0x010101U : 0x070707U) & (rows.inputs == 1 ? 0xFFU : 0xFFFFFFU);
  for (int64_t row = 0; row < at.rows; ++row)
    for (int64_t col = 0; col < at.cols; ++col)
      if ((nan & window << (row * 8 + col)) == 0) return false;
  return true;
}

void NonFiniteTiles::sum_directly(const Place& at, int64_t channel, const std::byte* const* inputs, Sums sums) const {
  const int64_t outputs = tiles_.outputs();
  const WinogradAxis& columns = tiles_.columns;
  const auto* weights = reinterpret_cast<const float*>(inputs[1] + transformed_bytes(g_, tiles_.side));
  const float* of_tile[kWinogradPoints];
  find_pixels(at, inputs[0], of_tile);
  const std::byte* pixels[9 * kWinogradOutput * kWinogradOutput];
  const auto find_pixels_of = [&](int64_t tap) {
    for (int64_t output = 0; output < outputs; ++output) {
      const int64_t row = output / columns.outputs + tap / g_.columns.kernel;
      const int64_t col = output % columns.outputs + tap % g_.columns.kernel;
      pixels[tap * outputs + output] = reinterpret_cast<const std::byte*>(of_tile[row * columns.inputs + col]);
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
  if (read_nan(at, of_tile)) {
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
