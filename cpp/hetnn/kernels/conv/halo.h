// A copy of images with a border of zeros as wide as windows reach, in which every window is whole.
#pragma once

#include <algorithm>
#include <vector>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/interleave.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// Channels lie side by side, pixels one after another. Windows of the copy are rows of a product, whose taps are runs
/// of elements in it.
template <typename Element>
class Halo {
 public:
  /// Of images of that view, whose border holds `zero`.
  Halo(const WindowGeometry& g, const TensorView& x, Element zero)
      : g_(g),
        height_((g.out_height - 1) * g.rows.stride + g.rows.reach()),
        width_((g.out_width - 1) * g.columns.stride + g.columns.reach()),
        zero_(zero),
        plain_(x.layout == Layout::plain),
        in_pitch_(x.pitch_elems) {}

  /// Behind the last element there is room for what a whole step reads.
  int64_t bytes() const {
    const int64_t elems = g_.batch * height_ * width_ * g_.channels;
    return (elems * kElem + 4 + 63) / 64 * 64;
  }
  /// A thread's share of it.
  void fill(const std::byte* x, std::byte* to, int thread, int threads) const {
    const Share share = share_of(g_.batch * height_, thread, threads);
    for (int64_t row = share.begin; row < share.end; ++row)
      fill_row(reinterpret_cast<const Element*>(x), reinterpret_cast<Element*>(to), row);
  }

  /// Where the taps of a window are from its first: its rows, or its pixels.
  std::vector<int64_t> row_taps() const {
    std::vector<int64_t> out;
    for (int64_t ky = 0; ky < g_.rows.kernel; ++ky) out.push_back(ky * g_.rows.dilation * width_ * pixel_bytes());
    return out;
  }
  std::vector<int64_t> pixel_taps() const {
    std::vector<int64_t> out;
    for (const int64_t row : row_taps())
      for (int64_t kx = 0; kx < g_.columns.kernel; ++kx) out.push_back(row + kx * g_.columns.dilation * pixel_bytes());
    return out;
  }

  /// The windows of a copy. The taps must outlive them.
  class Rows final : public RowSource {
   public:
    Rows(const Halo& halo, const std::byte* at, const std::vector<int64_t>& taps) : halo_(halo), at_(at), taps_(taps) {}

    void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      fill_from(output_pixel(halo_.g_, first), count, table, stride);
    }
    int64_t fill_even(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      const OutputPixel at = output_pixel(halo_.g_, first);
      const bool one_row = at.x + count <= halo_.g_.out_width;
      fill_from(at, one_row ? 1 : count, table, stride);
      return one_row ? halo_.g_.columns.stride * halo_.pixel_bytes() : 0;
    }
    EvenRows even_rows(int64_t /*count*/) const override {
      const WindowGeometry& g = halo_.g_;
      const int64_t row_bytes = halo_.width_ * halo_.pixel_bytes();
      return {.base = at_,
              .taps = taps_.data(),
              .step_bytes = g.columns.stride * halo_.pixel_bytes(),
              .line_rows = g.out_width,
              .line_bytes = g.rows.stride * row_bytes,
              .image_lines = g.out_height,
              .image_bytes = halo_.height_ * row_bytes};
    }

   private:
    void fill_from(OutputPixel at, int64_t count, const std::byte** table, int64_t stride) const {
      const WindowGeometry& g = halo_.g_;
      auto [n, oy, ox] = at;
      for (int64_t r = 0; r < count; ++r) {
        const std::byte* origin =
            at_ +
            ((n * halo_.height_ + oy * g.rows.stride) * halo_.width_ + ox * g.columns.stride) * halo_.pixel_bytes();
        for (size_t tap = 0; tap < taps_.size(); ++tap)
          table[static_cast<int64_t>(tap) * stride + r] = origin + taps_[tap];
        if (++ox < g.out_width) continue;
        ox = 0;
        if (++oy < g.out_height) continue;
        oy = 0;
        ++n;
      }
    }
    const Halo& halo_;
    const std::byte* at_;
    const std::vector<int64_t>& taps_;
  };

 private:
  static constexpr int64_t kElem = sizeof(Element);
  int64_t pixel_bytes() const { return g_.channels * kElem; }

  void fill_row(const Element* x, Element* halo, int64_t row) const {
    const Element zero = zero_;
    const int64_t n = row / height_, y = row % height_ - g_.rows.before;
    Element* to = halo + row * width_ * g_.channels;
    if (y < 0 || y >= g_.height) {
      std::fill_n(to, width_ * g_.channels, zero);
      return;
    }
    const int64_t begin = std::min(g_.columns.before, width_);
    const int64_t end = std::clamp(g_.width + g_.columns.before, begin, width_);
    std::fill_n(to, begin * g_.channels, zero);
    std::fill(to + end * g_.channels, to + width_ * g_.channels, zero);
    to += begin * g_.channels;
    const int64_t count = end - begin;
    const int64_t plane = g_.height * g_.width;
    if (plain_) {
      fill_pixels(x + n * g_.channels * plane + y * g_.width, plane, count, to);
    } else if (in_pitch_ == g_.channels) {
      std::copy_n(x + (n * plane + y * g_.width) * in_pitch_, count * in_pitch_, to);
    } else {
      const Element* from = x + (n * plane + y * g_.width) * in_pitch_;
      for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * in_pitch_, g_.channels, to + i * g_.channels);
    }
  }

  // Those of some planes.
  void fill_pixels(const Element* from, int64_t plane, int64_t count, Element* to) const {
    if (g_.channels == 3) return interleave_three(from, plane, count, to);
    for (int64_t c = 0; c < g_.channels; ++c)
      for (int64_t i = 0; i < count; ++i) to[i * g_.channels + c] = from[c * plane + i];
  }

  WindowGeometry g_;
  int64_t height_, width_;  // with the border
  Element zero_;
  bool plain_;
  int64_t in_pitch_;
};

}  // namespace hetnn::kernels
