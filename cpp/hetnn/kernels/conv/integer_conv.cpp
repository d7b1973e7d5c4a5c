// conv2d of quantized i8: sums of integers, requantized.
#include <algorithm>
#include <bit>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/integer_depthwise.h"
#include "hetnn/kernels/conv/integer_winograd.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

PanelShape shape_of(const WindowGeometry& g) {
  return has_few_channels(g) ? few_channels_shape(g, 1) : direct_shape(g, 1);
}

// Whose weights have no zero point of their own.
bool is_depthwise(const KernelCall& call, const WindowGeometry& g) {
  return g.depthwise() && LayerScales(call).weight_zero == 0;
}

int64_t quads_of(const WindowGeometry& g) { return (g.taps() + 3) / 4; }
int64_t blocks_of(const WindowGeometry& g) { return (g.channels + kDepthwiseBlock - 1) / kDepthwiseBlock; }
int64_t place_of(int64_t channel) {
  return channel / kDepthwiseBlock * kDepthwiseBlock + place_in_block(channel % kDepthwiseBlock);
}

bool is_by_columns(const WindowGeometry& g) {
  return g.rows.kernel == 3 && g.columns.kernel == 3 && g.columns.dilation == 1 && g.columns.stride <= 2;
}
// Where a tap stands in the quads of a channel.
int64_t place_in_quads(const WindowGeometry& g, int64_t tap) { return is_by_columns(g) ? tap % 3 * 4 + tap / 3 : tap; }

/// One input channel per output channel.
class IntegerDepthwiseConv final : public Kernel {
 public:
  IntegerDepthwiseConv(const KernelCall& call, const WindowGeometry& g)
      : windows_(g, call.inputs[0].pitch_elems, static_cast<int8_t>(LayerScales(call).x_zero)),
        ends_(call, LayerScales(call)),
        rounding_(LayerScales(call).rounding),
        run_(integer_depthwise().any),
        bias_(call.params.integer("bias", 0) != 0),
        out_pitch_(call.outputs[0].pitch_elems) {
    const IntegerDepthwiseFunction sliding = integer_depthwise().sliding[is_by_columns(g) ? g.columns.stride : 0];
    slides_ = sliding != nullptr;
    if (slides_) run_ = sliding;
  }

  int64_t scratch_bytes(int threads) const override { return threads * bytes_per_thread(); }
  bool serial() const override { return windows_.geometry().out_pixels() * windows_.geometry().channels < 4096; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const WindowGeometry& g = windows_.geometry();
    const int64_t padded = blocks_of(g) * kDepthwiseBlock;
    const WindowRows rows = windows_.on(inputs[0]);
    const auto** table = reinterpret_cast<const std::byte**>(context.scratch + context.thread * bytes_per_thread());
    std::fill_n(table, quads_of(g) * 4 * g.out_width, windows_.zeros());
    IntegerDepthwise tile{};
    tile.rows = table;
    tile.rows_stride = g.out_width;
    tile.quads = quads_of(g);
    tile.pixels = g.out_width;
    tile.channels = g.channels;
    tile.weights = inputs[1];
    tile.sums = reinterpret_cast<const int32_t*>(inputs[1] + padded * 4 * tile.quads);
    tile.factors = reinterpret_cast<const float*>(tile.sums + padded);
    const auto* shifts = reinterpret_cast<const int32_t*>(tile.factors + padded);
    const FixedPoint result{rounding_, ends_.zero, ends_.low, ends_.high};
    if (rounding_ != Rounding::half_even_fp32)
      tile.raw = reinterpret_cast<int32_t*>(reinterpret_cast<std::byte*>(table) + table_bytes());
    tile.bias = bias_ ? reinterpret_cast<const int32_t*>(inputs[2]) : nullptr;
    tile.x_zero = ends_.x_zero;
    tile.zero = ends_.zero;
    tile.low = ends_.low;
    tile.high = ends_.high;
    tile.ld_out = out_pitch_;
    const int8_t* const operand = ends_.sum.operand(inputs);
    const Share share = share_of(g.batch * g.out_height, context.thread, context.threads);
    tile.zeros = windows_.zeros();
    tile.before = g.columns.before;
    tile.width = g.width;
    for (int64_t row = share.begin; row < share.end; ++row) {
      if (is_by_columns(g)) {
        find_lines(inputs[0], row, tile);
        if (!slides_) fill_columns(tile, table);
      } else {
        rows.fill(row * g.out_width, g.out_width, table, g.out_width);
      }
      tile.out = reinterpret_cast<int8_t*>(outputs[0]) + row * g.out_width * out_pitch_;
      run_(tile);
      for (int64_t pixel = 0; tile.raw != nullptr && pixel < g.out_width; ++pixel) {
        for (int64_t c = 0; c < g.channels; ++c) {
          const int64_t at = place_of(c);
          const Requant factor{std::bit_cast<int32_t>(tile.factors[at]), shifts[at]};
          tile.out[pixel * out_pitch_ + c] = result(tile.raw[pixel * padded + at], factor);
        }
      }
      if (operand != nullptr)
        ends_.sum.add(operand, reinterpret_cast<int8_t*>(outputs[0]), out_pitch_,
                      {row * g.out_width, (row + 1) * g.out_width}, {0, g.channels});
    }
  }

  static int64_t packed_bytes(const WindowGeometry& g, int input) {
    return blocks_of(g) * kDepthwiseBlock * (input == 2 ? 4 : 4 * quads_of(g) + 12);
  }
  static std::vector<std::byte> pack(const WindowGeometry& g, const KernelCall& call, int input,
                                     std::span<const std::byte> weight) {
    std::vector<std::byte> packed(static_cast<size_t>(packed_bytes(g, input)));
    if (input == 2) {
      place_bias(call, weight.data(), g.channels, place_of, reinterpret_cast<int32_t*>(packed.data()));
      return packed;
    }
    const LayerScales scales(call);
    const int64_t padded = blocks_of(g) * kDepthwiseBlock;
    auto* to = reinterpret_cast<int8_t*>(packed.data());
    auto* sums = reinterpret_cast<int32_t*>(packed.data() + padded * 4 * quads_of(g));
    auto* factors = sums + padded;
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t place = place_of(c), block = place / kDepthwiseBlock * kDepthwiseBlock;
      factors[place] = scales.factor(c).multiplier;
      factors[padded + place] = scales.factor(c).shift;
      for (int64_t tap = 0; tap < g.taps(); ++tap) {
        const auto w = static_cast<int8_t>(weight[static_cast<size_t>(c * g.taps() + tap)]);
        sums[place] += w;
        const int64_t at = place_in_quads(g, tap);
        to[(block * quads_of(g) + at / 4 * kDepthwiseBlock + place - block) * 4 + at % 4] = w;
      }
    }
    return packed;
  }

 private:
  // Of a row of results, the rows of pixels of its windows.
  void find_lines(const std::byte* x, int64_t row, IntegerDepthwise& tile) const {
    const WindowGeometry& g = windows_.geometry();
    const int64_t image = row / g.out_height, first = g.rows.begin(row % g.out_height);
    for (int64_t ky = 0; ky < 3; ++ky) {
      const int64_t y = first + ky * g.rows.dilation;
      const bool is_inside = y >= 0 && y < g.height;
      tile.lines[ky] = is_inside ? x + (image * g.height + y) * g.width * windows_.pitch_bytes() : tile.zeros;
      tile.line_steps[ky] = is_inside ? windows_.pitch_bytes() : 0;
    }
  }

  // Pointers to the pixels of those lines, in the order of the quads.
  void fill_columns(const IntegerDepthwise& tile, const std::byte** table) const {
    const WindowGeometry& g = windows_.geometry();
    for (int64_t tap = 0; tap < 9; ++tap) {
      const std::byte** to = table + place_in_quads(g, tap) * g.out_width;
      for (int64_t pixel = 0, x = tap % 3 - tile.before; pixel < g.out_width; ++pixel, x += g.columns.stride)
        to[pixel] = x >= 0 && x < g.width ? tile.lines[tap / 3] + x * tile.line_steps[tap / 3] : tile.zeros;
    }
  }

  int64_t table_bytes() const {
    const WindowGeometry& g = windows_.geometry();
    return (quads_of(g) * 4 * g.out_width * static_cast<int64_t>(sizeof(const std::byte*)) + 63) / 64 * 64;
  }
  // Pointers to the windows' pixels, and where roundings want them, sums of a row.
  int64_t bytes_per_thread() const {
    const WindowGeometry& g = windows_.geometry();
    const bool raw = rounding_ != Rounding::half_even_fp32;
    return table_bytes() + (raw ? g.out_width * blocks_of(g) * kDepthwiseBlock * 4 : 0);
  }

  WindowTaps<int8_t> windows_;
  IntegerEnds ends_;
  Rounding rounding_;
  IntegerDepthwiseFunction run_;
  bool slides_ = false;
  bool bias_;
  int64_t out_pitch_;
};

// All operands but a few-channel image are nhwc here.
std::unique_ptr<Kernel> make_nhwc(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  if (is_depthwise(call, g)) return std::make_unique<IntegerDepthwiseConv>(call, g);
  if (has_few_channels(g)) return std::make_unique<FewChannelsConv<IntegerProduct>>(call, g);
  return std::make_unique<DirectConv<IntegerProduct>>(call, g);
}

// Where products of bytes are as quick, they are taken, of the panels that come first.
std::unique_ptr<Kernel> make_nhwc_winograd(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  return has_integer_winograd() ? make_integer_winograd_conv(call, g) : make_nhwc(call);
}

Refusal serves_nhwc_integers(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  if (!is_depthwise(call, g)) return IntegerProduct::serves(shape_of(g), call);
  return Terms("conv2d_i8", call)
      .hold(!has_real_sums(call), "writes i8 where each channel has a filter; got f32")
      .then([&] { return refuse_integer_steps(call); });
}

}  // namespace

Refusal serves_integer_conv2d(const KernelCall& call) {
  return Terms("conv2d_i8", call)
      .hold(serves_windows("conv2d_i8", call, DType::i8))
      .then([&] { return refuse_layer_scales(call); })
      .then([&] { return serves_with_nhwc(call, serves_nhwc_integers); });
}

std::unique_ptr<Kernel> make_integer_conv2d(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  // The first layer reads a plain image by itself.
  if (has_few_channels(g) && call.outputs[0].layout == Layout::nhwc)
    return std::make_unique<FewChannelsConv<IntegerProduct>>(call, g);
  return make_with_nhwc(call, make_nhwc);
}

int64_t packed_integer_conv2d_bytes(const KernelCall& call, int input) {
  const WindowGeometry g = conv_geometry(call);
  if (is_depthwise(call, g)) return IntegerDepthwiseConv::packed_bytes(g, input);
  return IntegerProduct::packed_bytes(shape_of(g), input);
}

std::vector<std::byte> pack_integer_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight) {
  const WindowGeometry g = conv_geometry(call);
  if (is_depthwise(call, g)) return IntegerDepthwiseConv::pack(g, call, input, weight);
  const PanelShape shape = shape_of(g);
  if (input == 2) return IntegerProduct::pack(shape, call, input, weight, {});
  const int64_t filter_elems = shape.taps * shape.k;
  return IntegerProduct::pack(shape, call, input, turned_filters<int8_t>(g, weight),
                              {shape.cols * filter_elems, filter_elems, shape.k, 1});
}

Refusal serves_integer_winograd(const KernelCall& call) {
  return Terms("conv2d_i8_winograd", call).hold(serves_integer_conv2d(call)).then([&] {
    return refuse_integer_winograd(conv_geometry(call), LayerScales(call).weight_zero);
  });
}

std::unique_ptr<Kernel> make_integer_winograd(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc_winograd);
}

int64_t packed_integer_winograd_bytes(const KernelCall& call, int input) {
  return packed_integer_conv2d_bytes(call, input) + (input == 1 ? integer_winograd_bytes(conv_geometry(call)) : 0);
}

std::vector<std::byte> pack_integer_winograd(const KernelCall& call, int input, std::span<const std::byte> weight) {
  std::vector<std::byte> packed = pack_integer_conv2d(call, input, weight);
  if (input != 1) return packed;
  const size_t panels_bytes = packed.size();
  packed.resize(static_cast<size_t>(packed_integer_winograd_bytes(call, input)));
  transform_integer_weight(conv_geometry(call), weight, packed.data() + panels_bytes);
  return packed;
}

}  // namespace hetnn::kernels
