// conv2d: choice of the variant, and depthwise convolution.
#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/depthwise.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/layout_adapter.h"

namespace hetnn::kernels {
namespace {

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

bool has_bias(const KernelCall& call) { return call.params.integer("bias", 0) != 0; }

// Depthwise weights are packed as one group with a single input channel: panels of 16 channels of the image.
PanelShape depthwise_shape(const WindowGeometry& g) {
  PanelShape shape;
  shape.taps = g.taps();
  shape.k = 1;
  shape.cols = g.out_channels;
  return shape;
}

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
  if (has_few_channels(g)) return std::make_unique<FewChannelsConv<PanelProduct>>(call, g);
  return std::make_unique<DirectConv<PanelProduct>>(call, g);
}

}  // namespace

std::unique_ptr<Kernel> make_conv2d(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  const std::string algorithm = call.params.text("algorithm", "direct");
  if (algorithm != "direct" && algorithm != "winograd")
    throw InvalidModel(
        text("conv2d: parameter algorithm must be direct or winograd; got ", algorithm, ". Ask choose_conv2d."));
  // The first layer reads a plain image by itself, when nothing else needs a copy.
  if (algorithm == "direct" && !g.depthwise() && has_few_channels(g) && call.outputs[0].layout == Layout::nhwc)
    return std::make_unique<FewChannelsConv<PanelProduct>>(call, g);
  return make_with_nhwc(call, make_nhwc_conv);
}

bool is_conv_weight(const KernelCall& /*call*/, int input) { return input == 1; }

int64_t packed_conv2d_bytes(const KernelCall& call, int /*input*/) {
  const WindowGeometry g = conv_geometry(call);
  if (is_winograd(call)) return packed_winograd_bytes(g);
  return (g.depthwise() ? depthwise_shape(g) : direct_shape(g)).packed_bytes();
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
  std::vector<std::byte> packed(static_cast<size_t>(shape.packed_bytes()));
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
      {.name = "conv2d_i8",
       .op = "conv2d",
       .speed = "conv",
       .create = make_integer_conv2d,
       .layout = LayoutWish::channels_last,
       .integers = true,
       .takes_steps = true,
       .is_weight = IntegerProduct::is_weight,
       .pack = pack_integer_conv2d,
       .packed_bytes = packed_integer_conv2d_bytes},
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
