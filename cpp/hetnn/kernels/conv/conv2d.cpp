// conv2d: choice of the variant, implicit GEMM, first-layer and depthwise convolution.
#include <algorithm>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/depthwise.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/layout_adapter.h"

namespace hetnn::kernels {
namespace {

// Below this many input channels the taps of a kernel row are merged into one long inner loop.
constexpr int64_t kFewChannels = 8;

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

bool has_bias(const KernelCall& call) { return call.params.integer("bias", 0) != 0; }

void check_conv_operands(std::string_view op, const KernelCall& call) {
  const bool bias = has_bias(call);
  if (call.inputs.size() < (bias ? 3u : 2u) || call.outputs.size() != 1)
    throw InvalidModel(text(op, " takes x, weight", bias ? ", bias" : "", " and gives one output; got ",
                            call.inputs.size(), " inputs and ", call.outputs.size(),
                            " outputs. Check the call against kernels/conv/conv.h."));
  for (size_t i = 0; i < (bias ? 3u : 2u); ++i) require_f32(call.inputs[i], text(op, ": input ", i));
  require_f32(call.outputs[0], text(op, ": the output"));
}

WindowGeometry conv_geometry(const KernelCall& call) {
  check_conv_operands("conv2d", call);
  const TensorView& x = call.inputs[0];
  const TensorView& weight = call.inputs[1];
  const TensorView& y = call.outputs[0];
  if (weight.rank != x.rank || weight.rank < 3)
    throw InvalidModel(text("conv2d: the weight must have the rank of x; got x ", view_text(x), ", weight ",
                            view_text(weight), ". Check the layer's weight."));
  const WindowGeometry g = window_geometry("conv2d", call, x, y, weight.dims[2], weight.dims[3]);
  if (weight.dims[0] != g.out_channels || weight.dims[1] * g.groups != g.channels)
    throw InvalidModel(text("conv2d: the weight must be [out_channels, in_channels/groups, ...]; got x ", view_text(x),
                            ", weight ", view_text(weight), ", output ", view_text(y), ", groups ", g.groups,
                            ". Check the layer's channels."));
  return g;
}

PanelShape direct_shape(const WindowGeometry& g) {
  PanelShape shape;
  shape.rows = g.out_pixels();
  shape.taps = g.taps();
  shape.groups = g.groups;
  shape.k = g.channels / g.groups;
  shape.cols = g.out_channels / g.groups;
  shape.a_bytes = g.batch * g.height * g.width * g.channels * 4;
  return shape;
}

// Depthwise weights are packed as one group with a single input channel: panels of 16 channels of the image.
PanelShape depthwise_shape(const WindowGeometry& g) {
  PanelShape shape;
  shape.taps = g.taps();
  shape.k = 1;
  shape.cols = g.out_channels;
  return shape;
}

/// The pixels an output's window covers, tap by tap; a row of zeros stands for what lies outside the image.
class WindowRows final : public RowSource {
 public:
  WindowRows(const WindowGeometry& g, const float* x, int64_t pitch, const float* zeros, const int64_t* tap_offsets)
      : g_(g), x_(x), pitch_(pitch), zeros_(zeros), tap_offsets_(tap_offsets) {}

  void fill(int64_t first, int64_t count, const float** table, int64_t stride) const override {
    const int64_t taps = g_.taps();
    int64_t ox = first % g_.out_width;
    int64_t oy = first / g_.out_width % g_.out_height;
    int64_t n = first / (g_.out_width * g_.out_height);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t iy = g_.rows.begin(oy), ix = g_.columns.begin(ox);
      const float* origin = x_ + ((n * g_.height + iy) * g_.width + ix) * pitch_;
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

 private:
  const WindowGeometry& g_;
  const float* x_;
  int64_t pitch_;
  const float* zeros_;
  const int64_t* tap_offsets_;
};

/// Implicit GEMM: output pixels are the rows, output channels the columns, the window's pixels the taps.
class DirectConv final : public Kernel {
 public:
  DirectConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        product_(direct_shape(g), EpiloguePlan(call, call.outputs[0])),
        bias_(has_bias(call)),
        pointwise_(g.taps() == 1 && g.rows.stride == 1 && g.columns.stride == 1 && g.rows.before == 0 &&
                   g.columns.before == 0 && g.out_height == g.height && g.out_width == g.width),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        zeros_(static_cast<size_t>(g.channels) * 4) {
    for (int64_t ky = 0; ky < g.rows.kernel; ++ky)
      for (int64_t kx = 0; kx < g.columns.kernel; ++kx)
        tap_offsets_.push_back((ky * g.rows.dilation * g.width + kx * g.columns.dilation) * in_pitch_);
  }

  int64_t scratch_bytes(int threads) const override { return threads * product_.scratch_bytes_per_thread(); }

  bool serial() const override {
    const PanelShape& s = product_.shape();
    return s.rows * s.cols * s.groups * s.k * s.taps < 32768;
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    PanelRun run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    std::byte* scratch = context.scratch + context.thread * product_.scratch_bytes_per_thread();
    if (pointwise_) {
      const DenseRows rows(floats(inputs[0]), in_pitch_);
      run.source = &rows;
      product_.run(run, context.thread, context.threads, scratch);
    } else {
      const WindowRows rows(g_, floats(inputs[0]), in_pitch_, zeros_.as<float>(), tap_offsets_.data());
      run.source = &rows;
      product_.run(run, context.thread, context.threads, scratch);
    }
  }

 private:
  WindowGeometry g_;
  PanelProduct product_;
  bool bias_;
  bool pointwise_;
  int64_t in_pitch_, out_pitch_;
  std::vector<int64_t> tap_offsets_;
  AlignedBuffer zeros_;
};

/// Few input channels: the image is copied once into a dense one with a zero halo (from either layout), in which a
/// kernel row of a window is one run of kernel_w * channels elements.
class FewChannelsConv final : public Kernel {
 public:
  FewChannelsConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        halo_h_((g.out_height - 1) * g.rows.stride + g.rows.reach()),
        halo_w_((g.out_width - 1) * g.columns.stride + g.columns.kernel),
        product_(shape(g), EpiloguePlan(call, call.outputs[0])),
        bias_(has_bias(call)),
        plain_(call.inputs[0].layout == Layout::plain),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems) {}

  static bool serves(const WindowGeometry& g) {
    return g.groups == 1 && g.channels <= kFewChannels && g.taps() > 1 && g.columns.dilation == 1;
  }

  int64_t scratch_bytes(int threads) const override {
    return halo_bytes() + threads * product_.scratch_bytes_per_thread();
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* halo = reinterpret_cast<float*>(context.scratch);
    const Share share = share_of(g_.batch * halo_h_, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) fill_row(floats(inputs[0]), halo, row);
    context.barrier.arrive_and_wait();
    const HaloRows rows(*this, halo);
    PanelRun run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    run.source = &rows;
    product_.run(run, context.thread, context.threads,
                 context.scratch + halo_bytes() + context.thread * product_.scratch_bytes_per_thread());
  }

 private:
  class HaloRows final : public RowSource {
   public:
    HaloRows(const FewChannelsConv& conv, const float* halo) : conv_(conv), halo_(halo) {}
    void fill(int64_t first, int64_t count, const float** table, int64_t stride) const override {
      const WindowGeometry& g = conv_.g_;
      const int64_t row_elems = conv_.halo_w_ * g.channels;
      for (int64_t r = 0; r < count; ++r) {
        const int64_t row = first + r;
        const int64_t ox = row % g.out_width, oy = row / g.out_width % g.out_height;
        const int64_t n = row / (g.out_width * g.out_height);
        const float* origin =
            halo_ + (n * conv_.halo_h_ + oy * g.rows.stride) * row_elems + ox * g.columns.stride * g.channels;
        for (int64_t ky = 0; ky < g.rows.kernel; ++ky)
          table[ky * stride + r] = origin + ky * g.rows.dilation * row_elems;
      }
    }

   private:
    const FewChannelsConv& conv_;
    const float* halo_;
  };

  static PanelShape shape(const WindowGeometry& g) {
    PanelShape s = direct_shape(g);
    s.taps = g.rows.kernel;
    s.k = g.columns.kernel * g.channels;
    return s;
  }

  int64_t halo_bytes() const { return (g_.batch * halo_h_ * halo_w_ * g_.channels * 4 + 63) / 64 * 64; }

  void fill_row(const float* x, float* halo, int64_t row) const {
    const int64_t n = row / halo_h_, y = row % halo_h_ - g_.rows.before;
    float* to = halo + row * halo_w_ * g_.channels;
    if (y < 0 || y >= g_.height) {
      std::fill_n(to, halo_w_ * g_.channels, 0.0f);
      return;
    }
    const int64_t begin = std::min(g_.columns.before, halo_w_);
    const int64_t end = std::clamp(g_.width + g_.columns.before, begin, halo_w_);
    std::fill_n(to, begin * g_.channels, 0.0f);
    std::fill(to + end * g_.channels, to + halo_w_ * g_.channels, 0.0f);
    to += begin * g_.channels;
    const int64_t count = end - begin;
    const int64_t plane = g_.height * g_.width;
    if (plain_) {
      for (int64_t c = 0; c < g_.channels; ++c) {
        const float* from = x + (n * g_.channels + c) * plane + y * g_.width;
        for (int64_t i = 0; i < count; ++i) to[i * g_.channels + c] = from[i];
      }
    } else {
      const float* from = x + (n * plane + y * g_.width) * in_pitch_;
      for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * in_pitch_, g_.channels, to + i * g_.channels);
    }
  }

  WindowGeometry g_;
  int64_t halo_h_, halo_w_;
  PanelProduct product_;
  bool bias_;
  bool plain_;
  int64_t in_pitch_, out_pitch_;
};

/// One input channel per output channel: vectors run over channels, windows are cut at the borders.
class DepthwiseConv final : public Kernel {
 public:
  DepthwiseConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        epilogue_(call, call.outputs[0]),
        registers_(epilogue_.take_register_part(false)),
        table_(&depthwise_table()),
        bias_(has_bias(call)),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems) {}

  bool serial() const override { return g_.out_pixels() * g_.channels * g_.taps() < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const Share share = share_of(g_.batch * g_.out_height, context.thread, context.threads);
    for (int64_t row = share.begin; row < share.end; ++row) run_row(row, inputs, floats(outputs[0]));
  }

 private:
  // Output columns whose window lies inside the image from left to right.
  Share inner_columns() const {
    const int64_t begin = g_.columns.windows(0, g_.out_width, g_.width).begin;
    return {begin, std::max(begin, g_.columns.windows(g_.columns.kernel - 1, g_.out_width, g_.width).end)};
  }

  void run_row(int64_t row, const std::byte* const* inputs, float* out) const {
    const int64_t n = row / g_.out_height, oy = row % g_.out_height;
    const int64_t iy = g_.rows.begin(oy);
    DepthwiseTile tile{};
    tile.ky_stride = g_.rows.dilation * g_.width * in_pitch_;
    tile.kx_stride = g_.columns.dilation * in_pitch_;
    tile.pixel_stride = g_.columns.stride * in_pitch_;
    const ops::Interval taps = g_.rows.taps(oy, g_.height);
    tile.ky_begin = taps.begin;
    tile.ky_end = taps.end;
    tile.kernel_w = g_.columns.kernel;
    tile.panels = floats(inputs[1]);
    tile.panel_stride = g_.taps() * kPanel;
    tile.bias = bias_ ? floats(inputs[2]) : nullptr;
    tile.ld_out = out_pitch_;
    tile.channels = g_.channels;
    tile.lo = registers_.lo;
    tile.hi = registers_.hi;
    const float* origin = floats(inputs[0]) + (n * g_.height + iy) * g_.width * in_pitch_;
    const Share inner = inner_columns();
    auto* four = table_->four;
    if (g_.columns.kernel == 3)
      four = g_.columns.stride == g_.columns.dilation ? table_->four_by_3 : table_->four_by_3_any;
    if (g_.columns.kernel == 5 && g_.columns.stride == g_.columns.dilation) four = table_->four_by_5;
    for (int64_t ox = 0; ox < g_.out_width;) {
      int64_t count = 1;
      tile.in = origin + g_.columns.begin(ox) * in_pitch_;
      tile.out = out + (row * g_.out_width + ox) * out_pitch_;
      if (ox >= inner.begin && ox + kDepthwisePixels <= inner.end) {
        count = kDepthwisePixels;
        tile.kx_begin = 0;
        tile.kx_end = g_.columns.kernel;
        four(tile);
      } else {
        const ops::Interval columns = g_.columns.taps(ox, g_.width);
        tile.kx_begin = columns.begin;
        tile.kx_end = columns.end;
        table_->one(tile);
      }
      if (!epilogue_.empty())
        epilogue_.apply(tile.out, out_pitch_, count, g_.channels, row * g_.out_width + ox, 0, inputs);
      ox += count;
    }
  }

  WindowGeometry g_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  const DepthwiseTable* table_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
};

bool is_winograd(const KernelCall& call) { return call.params.text("algorithm", "direct") == "winograd"; }

// All operands but a few-channel image are nhwc here.
std::unique_ptr<Kernel> make_nhwc_conv(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  if (is_winograd(call)) return make_winograd_conv(call, g);
  if (g.depthwise()) return std::make_unique<DepthwiseConv>(call, g);
  if (FewChannelsConv::serves(g)) return std::make_unique<FewChannelsConv>(call, g);
  return std::make_unique<DirectConv>(call, g);
}

}  // namespace

std::unique_ptr<Kernel> make_conv2d(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  const std::string algorithm = call.params.text("algorithm", "direct");
  if (algorithm != "direct" && algorithm != "winograd")
    throw InvalidModel(
        text("conv2d: parameter algorithm must be direct or winograd; got ", algorithm, ". Ask choose_conv2d."));
  // The first layer reads a plain image by itself, when nothing else needs a copy.
  if (algorithm == "direct" && !g.depthwise() && FewChannelsConv::serves(g) && call.outputs[0].layout == Layout::nhwc)
    return std::make_unique<FewChannelsConv>(call, g);
  return make_with_nhwc(call, make_nhwc_conv);
}

bool is_conv_weight(const KernelCall& /*call*/, int input) { return input == 1; }

int64_t packed_conv2d_bytes(const KernelCall& call, int /*input*/) {
  const WindowGeometry g = conv_geometry(call);
  if (is_winograd(call)) return packed_winograd_bytes(g);
  return (g.depthwise() ? depthwise_shape(g) : direct_shape(g)).packed_elems() * 4;
}

std::vector<std::byte> pack_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight) {
  HETNN_ASSERT(input == 1, "conv2d packs input 1 only; got ", input);
  const WindowGeometry g = conv_geometry(call);
  const TensorView& view = call.inputs[1];
  if (static_cast<int64_t>(weight.size()) != view.elems() * 4)
    throw InvalidModel(text("conv2d: the weight's bytes must match its shape ", view_text(view), "; got ",
                            weight.size(), " bytes. Pass the plain f32 weight."));
  if (is_winograd(call)) return pack_winograd(g, floats(weight.data()));
  const PanelShape shape = g.depthwise() ? depthwise_shape(g) : direct_shape(g);
  std::vector<std::byte> packed(static_cast<size_t>(shape.packed_elems()) * 4);
  const int64_t taps = g.taps();
  const PackStrides strides{shape.cols * shape.k * taps, shape.k * taps, 1, taps};
  pack_panels(shape, floats(weight.data()), strides, floats(packed.data()));
  return packed;
}

ops::Attrs choose_conv2d(const KernelCall& call) {
  if (call.params.has("algorithm") || !winograd_pays(conv_geometry(call))) return {};
  return {{"algorithm", std::string("winograd")}};
}

std::span<const Variant> conv_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "conv2d",
       .op = "conv2d",
       .speed = "conv",
       .create = make_conv2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_conv2d,
       .packed_bytes = packed_conv2d_bytes,
       .choose = choose_conv2d},
      {.name = "gated_conv2d",
       .op = "gated_conv2d",
       .speed = "move",
       .create = make_gated_conv2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_gated_conv2d,
       .packed_bytes = packed_gated_conv2d_bytes},
      {.name = "conv_transpose2d",
       .op = "conv_transpose2d",
       .speed = "conv",
       .create = make_conv_transpose2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_conv_transpose2d,
       .packed_bytes = packed_conv_transpose2d_bytes},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
