// Convolution as a product of matrices that are never built: output pixels are the rows, output channels the columns.
//
// The kernels are the same for every element type; Product is the engine, PanelProduct or IntegerProduct.
#pragma once

#include <algorithm>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/halo.h"
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

  EvenRows even_rows(int64_t /*count*/) const override {
    if (!are_whole(g_)) return {};
    return {.base = x_,
            .taps = tap_offsets_,
            .step_bytes = g_.columns.stride * pitch_,
            .line_rows = g_.out_width,
            .line_bytes = g_.rows.stride * g_.width * pitch_,
            .image_lines = g_.out_height,
            .image_bytes = g_.height * g_.width * pitch_};
  }

  /// Whether all windows lie inside the image.
  static bool are_whole(const WindowGeometry& g) {
    return g.rows.before == 0 && g.columns.before == 0 &&
           (g.out_height - 1) * g.rows.stride + g.rows.reach() <= g.height &&
           (g.out_width - 1) * g.columns.stride + g.columns.reach() <= g.width;
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

/// Of any window: its pixels are read where they lie, or, where the product reads none but evenly spaced rows, in a
/// copy with a border.
template <typename Product>
class DirectConv final : public Kernel {
  using Element = typename Product::Element;

 public:
  DirectConv(const KernelCall& call, const WindowGeometry& g)
      : pointwise_(g.taps() == 1 && g.rows.stride == 1 && g.columns.stride == 1 && g.rows.before == 0 &&
                   g.columns.before == 0 && g.out_height == g.height && g.out_width == g.width),
        copies_(must_copy(g, pointwise_)),
        product_(shape_of(g, copies_), call),
        windows_(g, call.inputs[0].pitch_elems, product_.row_zero()),
        halo_(g, call.inputs[0], product_.row_zero()),
        taps_(halo_.pixel_taps()),
        bias_(call.params.integer("bias", 0) != 0),
        out_pitch_(call.outputs[0].pitch_elems) {}

  int64_t scratch_bytes(int threads) const override {
    return halo_bytes() + threads * product_.scratch_bytes_per_thread();
  }

  bool serial() const override { return product_.shape().is_small(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    std::byte* scratch = context.scratch + halo_bytes() + context.thread * product_.scratch_bytes_per_thread();
    if (copies_) {
      halo_.fill(inputs[0], context.scratch, context.thread, context.threads);
      context.barrier.arrive_and_wait();
    }
    const DenseRows pixels(inputs[0], windows_.pitch_bytes());
    const WindowRows windows = windows_.on(inputs[0]);
    const typename Halo<Element>::Rows copied(halo_, context.scratch, taps_);
    run.source = copies_      ? static_cast<const RowSource*>(&copied)
                 : pointwise_ ? static_cast<const RowSource*>(&pixels)
                              : &windows;
    product_.run(run, context.thread, context.threads, scratch);
  }

 private:
  static bool must_copy(const WindowGeometry& g, bool pointwise) {
    const PanelShape shape = direct_shape(g, sizeof(Element));
    return Product::reads_even_rows(shape) && !pointwise && (!WindowRows::are_whole(g) || shape.k % shape.step() != 0);
  }
  static PanelShape shape_of(const WindowGeometry& g, bool copies) {
    PanelShape shape = direct_shape(g, sizeof(Element));
    shape.whole_steps = copies;
    return shape;
  }
  int64_t halo_bytes() const { return copies_ ? halo_.bytes() : 0; }

  bool pointwise_;
  bool copies_;
  Product product_;
  WindowTaps<Element> windows_;
  Halo<Element> halo_;
  std::vector<int64_t> taps_;
  bool bias_;
  int64_t out_pitch_;
};

inline constexpr int64_t kFewChannels = 8;
/// Whether the taps of a kernel row are merged into one long inner loop: of few input channels.
inline bool has_few_channels(const WindowGeometry& g) {
  return g.groups == 1 && g.channels <= kFewChannels && g.taps() > 1 && g.columns.dilation == 1;
}

/// Filters as [O][taps][C / groups], so that channels lie side by side as in a row.
template <typename Element>
std::vector<std::byte> turned_filters(const WindowGeometry& g, std::span<const std::byte> weight) {
  const int64_t taps = g.taps(), channels = g.channels / g.groups;
  HETNN_ASSERT(weight.size() == static_cast<size_t>(g.out_channels * taps * channels) * sizeof(Element));
  std::vector<std::byte> turned(weight.size());
  const auto* from = reinterpret_cast<const Element*>(weight.data());
  auto* to = reinterpret_cast<Element*>(turned.data());
  for (int64_t filter = 0; filter < g.out_channels; ++filter, from += taps * channels)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < channels; ++c) *to++ = from[c * taps + tap];
  return turned;
}

/// The shape of that product: kernel rows are the taps.
inline PanelShape few_channels_shape(const WindowGeometry& g, int64_t elem_bytes = 4) {
  PanelShape shape = direct_shape(g, elem_bytes);
  shape.taps = g.rows.kernel;
  shape.k = g.columns.kernel * g.channels;
  shape.whole_steps = true;
  return shape;
}

/// Few input channels: of a copy of the image with a border (from either layout) a kernel row of a window is one run of
/// kernel_w * channels elements.
template <typename Product>
class FewChannelsConv final : public Kernel {
  using Element = typename Product::Element;

 public:
  FewChannelsConv(const KernelCall& call, const WindowGeometry& g)
      : product_(few_channels_shape(g, sizeof(Element)), call),
        halo_(g, call.inputs[0], product_.row_zero()),
        taps_(halo_.row_taps()),
        bias_(call.params.integer("bias", 0) != 0),
        out_pitch_(call.outputs[0].pitch_elems) {}

  int64_t scratch_bytes(int threads) const override {
    return halo_.bytes() + threads * product_.scratch_bytes_per_thread();
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    halo_.fill(inputs[0], context.scratch, context.thread, context.threads);
    context.barrier.arrive_and_wait();
    const typename Halo<Element>::Rows rows(halo_, context.scratch, taps_);
    auto run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    run.source = &rows;
    product_.run(run, context.thread, context.threads,
                 context.scratch + halo_.bytes() + context.thread * product_.scratch_bytes_per_thread());
  }

 private:
  Product product_;
  Halo<Element> halo_;
  std::vector<int64_t> taps_;
  bool bias_;
  int64_t out_pitch_;
};

/// The one of them that fits windows over f32, all of whose operands are nhwc.
std::unique_ptr<Kernel> make_implicit_conv(const KernelCall& call, const WindowGeometry& g);

/// What the direct one, and a transposed one phase after phase, compute and fetch.
Work direct_work_of(const KernelCall& call, const WindowGeometry& g, const Machine& machine);
Work phases_work(const KernelCall& call, const WindowGeometry& g, const Machine& machine);

/// Packs a weight [O, C/groups, kh, kw] in panels of that shape.
std::unique_ptr<Packer> make_panel_packer(const WindowGeometry& g, const PanelShape& shape);

}  // namespace hetnn::kernels
