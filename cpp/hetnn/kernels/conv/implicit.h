// Convolution as a product of matrices that are never built: output pixels are the rows, output channels the columns.
//
// The kernels are the same for every element type; Product is the engine, PanelProduct or IntegerProduct.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/interleave.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// The weight of a call as the product of a direct convolution: the window's pixels are the taps.
inline PanelShape direct_shape(const WindowGeometry& g, int64_t elem_bytes = 4) {
  PanelShape shape;
  shape.rows = g.out_pixels();
  shape.taps = g.taps();
  shape.groups = g.groups;
  shape.k = g.channels / g.groups;
  shape.cols = g.out_channels / g.groups;
  shape.a_bytes = g.batch * g.height * g.width * g.channels * elem_bytes;
  shape.elem_bytes = elem_bytes;
  return shape;
}

/// Image, row and column of an output pixel.
struct OutputPixel {
  int64_t n, y, x;
};
inline OutputPixel output_pixel(const WindowGeometry& g, int64_t number) {
  const int64_t row = number / g.out_width, n = row < g.out_height ? 0 : row / g.out_height;
  return {n, row - n * g.out_height, number - row * g.out_width};
}

/// The pixels an output's window covers, tap by tap; a row of zeros stands for what lies outside the image. Distances
/// are in bytes.
class WindowRows final : public RowSource {
 public:
  WindowRows(const WindowGeometry& g, const std::byte* x, int64_t pitch, const std::byte* zeros,
             const int64_t* tap_offsets)
      : g_(g), x_(x), pitch_(pitch), zeros_(zeros), tap_offsets_(tap_offsets) {}

  void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
    fill_from(output_pixel(g_, first), count, table, stride);
  }

  // Of one row of the image, their windows inside it.
  int64_t fill_even(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
    const OutputPixel at = output_pixel(g_, first);
    const int64_t iy = g_.rows.begin(at.y), last = at.x + count - 1;
    const bool inside = last < g_.out_width && iy >= 0 && iy + g_.rows.reach() <= g_.height &&
                        g_.columns.begin(at.x) >= 0 && g_.columns.begin(last) + g_.columns.reach() <= g_.width;
    fill_from(at, inside ? 1 : count, table, stride);
    return inside ? g_.columns.stride * pitch_ : 0;
  }

 private:
  void fill_from(OutputPixel at, int64_t count, const std::byte** table, int64_t stride) const {
    const int64_t taps = g_.taps();
    auto [n, oy, ox] = at;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t iy = g_.rows.begin(oy), ix = g_.columns.begin(ox);
      const std::byte* origin = x_ + ((n * g_.height + iy) * g_.width + ix) * pitch_;
      const bool inside =
          iy >= 0 && ix >= 0 && iy + g_.rows.reach() <= g_.height && ix + g_.columns.reach() <= g_.width;
      if (inside) {
        for (int64_t tap = 0; tap < taps; ++tap) table[tap * stride + r] = origin + tap_offsets_[tap];
      } else {
        for (int64_t ky = 0, tap = 0; ky < g_.rows.kernel; ++ky) {
          const int64_t y = iy + ky * g_.rows.dilation;
          for (int64_t kx = 0; kx < g_.columns.kernel; ++kx, ++tap) {
            const int64_t x = ix + kx * g_.columns.dilation;
            const bool hit = y >= 0 && y < g_.height && x >= 0 && x < g_.width;
            table[tap * stride + r] = hit ? origin + tap_offsets_[tap] : zeros_;
          }
        }
      }
      if (++ox == g_.out_width) {
        ox = 0;
        if (++oy == g_.out_height) {
          oy = 0;
          ++n;
        }
      }
    }
  }

  const WindowGeometry& g_;
  const std::byte* x_;
  int64_t pitch_;
  const std::byte* zeros_;
  const int64_t* tap_offsets_;
};

/// What makes WindowRows of an image: distances of the taps, and a pixel that stands for what lies outside.
template <typename Element>
class WindowTaps {
 public:
  WindowTaps(const WindowGeometry& g, int64_t pitch_elems, Element zero)
      : g_(g),
        pitch_bytes_(pitch_elems * static_cast<int64_t>(sizeof(Element))),
        zeros_(static_cast<size_t>(g.channels) * sizeof(Element)) {
    std::fill_n(zeros_.template as<Element>(), g.channels, zero);
    for (int64_t ky = 0; ky < g.rows.kernel; ++ky)
      for (int64_t kx = 0; kx < g.columns.kernel; ++kx)
        offsets_.push_back((ky * g.rows.dilation * g.width + kx * g.columns.dilation) * pitch_bytes_);
  }
  const WindowGeometry& geometry() const { return g_; }
  int64_t pitch_bytes() const { return pitch_bytes_; }
  const std::byte* zeros() const { return zeros_.data(); }
  WindowRows on(const std::byte* x) const { return {g_, x, pitch_bytes_, zeros_.data(), offsets_.data()}; }

 private:
  WindowGeometry g_;
  int64_t pitch_bytes_;
  std::vector<int64_t> offsets_;
  AlignedBuffer zeros_;
};

/// Of any window: its pixels are read where they lie.
template <typename Product>
class DirectConv final : public Kernel {
  using Element = typename Product::Element;

 public:
  DirectConv(const KernelCall& call, const WindowGeometry& g)
      : product_(direct_shape(g, sizeof(Element)), call),
        windows_(g, call.inputs[0].pitch_elems, product_.row_zero()),
        bias_(call.params.integer("bias", 0) != 0),
        pointwise_(g.taps() == 1 && g.rows.stride == 1 && g.columns.stride == 1 && g.rows.before == 0 &&
                   g.columns.before == 0 && g.out_height == g.height && g.out_width == g.width),
        out_pitch_(call.outputs[0].pitch_elems) {}

  int64_t scratch_bytes(int threads) const override { return threads * product_.scratch_bytes_per_thread(); }

  bool serial() const override { return product_.shape().is_small(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    std::byte* scratch = context.scratch + context.thread * product_.scratch_bytes_per_thread();
    const DenseRows pixels(inputs[0], windows_.pitch_bytes());
    const WindowRows windows = windows_.on(inputs[0]);
    run.source = pointwise_ ? static_cast<const RowSource*>(&pixels) : &windows;
    product_.run(run, context.thread, context.threads, scratch);
  }

 private:
  Product product_;
  WindowTaps<Element> windows_;
  bool bias_;
  bool pointwise_;
  int64_t out_pitch_;
};

/// Whether the taps of a kernel row are merged into one long inner loop: of few input channels.
inline bool has_few_channels(const WindowGeometry& g) {
  constexpr int64_t kFewChannels = 8;
  return g.groups == 1 && g.channels <= kFewChannels && g.taps() > 1 && g.columns.dilation == 1;
}

/// The shape of that product: kernel rows are the taps.
inline PanelShape few_channels_shape(const WindowGeometry& g, int64_t elem_bytes = 4) {
  PanelShape shape = direct_shape(g, elem_bytes);
  shape.taps = g.rows.kernel;
  shape.k = g.columns.kernel * g.channels;
  shape.whole_steps = true;
  return shape;
}

/// Few input channels: the image is copied once into a dense one with a zero halo (from either layout), in which a
/// kernel row of a window is one run of kernel_w * channels elements.
template <typename Product>
class FewChannelsConv final : public Kernel {
  using Element = typename Product::Element;

 public:
  FewChannelsConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        halo_h_((g.out_height - 1) * g.rows.stride + g.rows.reach()),
        halo_w_((g.out_width - 1) * g.columns.stride + g.columns.kernel),
        product_(few_channels_shape(g, sizeof(Element)), call),
        bias_(call.params.integer("bias", 0) != 0),
        plain_(call.inputs[0].layout == Layout::plain),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems) {}

  int64_t scratch_bytes(int threads) const override {
    return halo_bytes() + threads * product_.scratch_bytes_per_thread();
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* halo = reinterpret_cast<Element*>(context.scratch);
    const Share share = share_of(g_.batch * halo_h_, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row)
      fill_row(reinterpret_cast<const Element*>(inputs[0]), halo, row);
    context.barrier.arrive_and_wait();
    const HaloRows rows(*this, halo);
    auto run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    run.source = &rows;
    product_.run(run, context.thread, context.threads,
                 context.scratch + halo_bytes() + context.thread * product_.scratch_bytes_per_thread());
  }

 private:
  class HaloRows final : public RowSource {
   public:
    HaloRows(const FewChannelsConv& conv, const Element* halo) : conv_(conv), halo_(halo) {}
    void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      fill_from(output_pixel(conv_.g_, first), count, table, stride);
    }
    int64_t fill_even(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      const WindowGeometry& g = conv_.g_;
      const OutputPixel at = output_pixel(g, first);
      const bool one_row = at.x + count <= g.out_width;
      fill_from(at, one_row ? 1 : count, table, stride);
      return one_row ? g.columns.stride * g.channels * static_cast<int64_t>(sizeof(Element)) : 0;
    }

   private:
    void fill_from(OutputPixel at, int64_t count, const std::byte** table, int64_t stride) const {
      const WindowGeometry& g = conv_.g_;
      const int64_t row_elems = conv_.halo_w_ * g.channels, tap_elems = g.rows.dilation * row_elems;
      auto [n, oy, ox] = at;
      for (int64_t r = 0; r < count; ++r) {
        const Element* origin =
            halo_ + (n * conv_.halo_h_ + oy * g.rows.stride) * row_elems + ox * g.columns.stride * g.channels;
        for (int64_t ky = 0; ky < g.rows.kernel; ++ky)
          table[ky * stride + r] = reinterpret_cast<const std::byte*>(origin + ky * tap_elems);
        if (++ox < g.out_width) continue;
        ox = 0;
        if (++oy < g.out_height) continue;
        oy = 0;
        ++n;
      }
    }
    const FewChannelsConv& conv_;
    const Element* halo_;
  };

  // Behind the last element there is room for what a whole step reads.
  int64_t halo_bytes() const {
    const int64_t elems = g_.batch * halo_h_ * halo_w_ * g_.channels;
    return (elems * static_cast<int64_t>(sizeof(Element)) + 4 + 63) / 64 * 64;
  }

  void fill_row(const Element* x, Element* halo, int64_t row) const {
    const Element zero = product_.row_zero();
    const int64_t n = row / halo_h_, y = row % halo_h_ - g_.rows.before;
    Element* to = halo + row * halo_w_ * g_.channels;
    if (y < 0 || y >= g_.height) {
      std::fill_n(to, halo_w_ * g_.channels, zero);
      return;
    }
    const int64_t begin = std::min(g_.columns.before, halo_w_);
    const int64_t end = std::clamp(g_.width + g_.columns.before, begin, halo_w_);
    std::fill_n(to, begin * g_.channels, zero);
    std::fill(to + end * g_.channels, to + halo_w_ * g_.channels, zero);
    to += begin * g_.channels;
    const int64_t count = end - begin;
    const int64_t plane = g_.height * g_.width;
    constexpr bool kInterleaves = sizeof(Element) == 4 || std::endian::native == std::endian::little;
    if (kInterleaves && plain_ && g_.channels == 3) {
      interleave_three(x + n * 3 * plane + y * g_.width, plane, count, to);
    } else if (plain_) {
      for (int64_t c = 0; c < g_.channels; ++c) {
        const Element* from = x + (n * g_.channels + c) * plane + y * g_.width;
        for (int64_t i = 0; i < count; ++i) to[i * g_.channels + c] = from[i];
      }
    } else {
      const Element* from = x + (n * plane + y * g_.width) * in_pitch_;
      for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * in_pitch_, g_.channels, to + i * g_.channels);
    }
  }

  static void interleave_three(const float* from, int64_t plane, int64_t count, float* to) {
    kernels::interleave_three(from, plane, count, to);
  }
  // Three bytes at once, and one more that the next pixel overwrites.
  static void interleave_three(const int8_t* from, int64_t plane, int64_t count, int8_t* to) {
    const auto byte = [&](int64_t i, int64_t c) { return uint32_t{static_cast<uint8_t>(from[c * plane + i])}; };
    for (int64_t i = 0; i + 1 < count; ++i) {
      const uint32_t pixel = byte(i, 0) | byte(i, 1) << 8 | byte(i, 2) << 16;
      std::memcpy(to + 3 * i, &pixel, sizeof pixel);
    }
    for (int64_t c = 0; c < 3 && count > 0; ++c) to[3 * (count - 1) + c] = from[c * plane + count - 1];
  }

  WindowGeometry g_;
  int64_t halo_h_, halo_w_;
  Product product_;
  bool bias_;
  bool plain_;
  int64_t in_pitch_, out_pitch_;
};

}  // namespace hetnn::kernels
