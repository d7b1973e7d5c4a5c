// Cuts convolutions of few products a channel into blocks of channels, rows and tiles.
#include "hetnn/kernels/conv/sliding.h"

#include <algorithm>

#include "hetnn/kernels/conv/sliding_tile.h"
#include "hetnn/kernels/epilogue.h"

namespace hetnn::kernels {
namespace {

// A block of channels has weights that stay in the first level while its rows are computed.
constexpr int64_t kBlockWeights_bytes = 16 << 10;
constexpr int64_t kSmallProducts = 16384;

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

class SlidingConv final : public Kernel {
 public:
  SlidingConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        shape_(sliding_shape(g)),
        epilogue_(call, call.outputs[0]),
        registers_(epilogue_.take_register_part(false)),
        functions_(g.depthwise() ? depthwise_functions(g.columns.kernel, g.columns.stride == g.columns.dilation)
                                 : grouped_functions(shape_.k)),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        panels_(shape_.panels_per_group()),
        blocks_(std::max<int64_t>(1, panels_ * shape_.panel_bytes() / kBlockWeights_bytes)) {}

  bool serial() const override { return g_.out_pixels() * shape_.cols * shape_.k * shape_.taps < kSmallProducts; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t rows = g_.batch * g_.out_height;
    const Share share = share_of(rows * blocks_, context.thread, context.threads);
    for (int64_t unit = share.begin; unit < share.end; ++unit) {
      const Share panels = share_of(panels_, static_cast<int>(unit / rows), static_cast<int>(blocks_));
      run_row(unit % rows, {panels.begin * kPanel, std::min(panels.end * kPanel, shape_.cols)}, inputs,
              reinterpret_cast<float*>(outputs[0]));
    }
  }

 private:
  // Output columns whose window lies inside the image from left to right.
  Share inner_columns() const {
    const int64_t begin = g_.columns.windows(0, g_.out_width, g_.width).begin;
    return {begin, std::max(begin, g_.columns.windows(g_.columns.kernel - 1, g_.out_width, g_.width).end)};
  }

  void run_row(int64_t row, Share channels, const std::byte* const* inputs, float* out) const {
    const int64_t n = row / g_.out_height, oy = row % g_.out_height;
    const int64_t first_input = channels.begin / (g_.out_channels / g_.groups) * shape_.k;
    SlidingTile tile{};
    tile.ky_stride = g_.rows.dilation * g_.width * in_pitch_;
    tile.kx_stride = g_.columns.dilation * in_pitch_;
    tile.pixel_stride = g_.columns.stride * in_pitch_;
    const ops::Interval taps = g_.rows.taps(oy, g_.height);
    tile.ky_begin = taps.begin;
    tile.ky_end = taps.end;
    tile.kernel_w = g_.columns.kernel;
    tile.panel_stride = shape_.panel_bytes() / 4;
    tile.panels = floats(inputs[1]) + channels.begin / kPanel * tile.panel_stride;
    tile.bias = bias_ ? floats(inputs[2]) + channels.begin : nullptr;
    tile.ld_out = out_pitch_;
    tile.channels = channels.end - channels.begin;
    tile.input_channels = g_.channels - first_input;
    tile.group_outputs = g_.out_channels / g_.groups;
    tile.lo = registers_.lo;
    tile.hi = registers_.hi;
    const float* origin = floats(inputs[0]) + (n * g_.height + g_.rows.begin(oy)) * g_.width * in_pitch_ + first_input;
    const Share inner = inner_columns();
    for (int64_t ox = 0; ox < g_.out_width;) {
      int64_t count = 1;
      tile.in = origin + g_.columns.begin(ox) * in_pitch_;
      tile.out = out + (row * g_.out_width + ox) * out_pitch_ + channels.begin;
      if (ox >= inner.begin && ox + functions_.pixels <= inner.end) {
        count = functions_.pixels;
        tile.kx_begin = 0;
        tile.kx_end = g_.columns.kernel;
        functions_.uncut(tile);
      } else {
        const ops::Interval columns = g_.columns.taps(ox, g_.width);
        tile.kx_begin = columns.begin;
        tile.kx_end = columns.end;
        functions_.one(tile);
      }
      if (!epilogue_.empty()) {
        epilogue_.apply(tile.out, out_pitch_, count, tile.channels, row * g_.out_width + ox, channels.begin, inputs);
      }
      ox += count;
    }
  }

  WindowGeometry g_;
  PanelShape shape_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  SlidingFunctions functions_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  int64_t panels_, blocks_;
};

}  // namespace

bool has_narrow_groups(const WindowGeometry& g) {
  const int64_t inputs = g.channels / g.groups, outputs = g.out_channels / g.groups;
  return g.groups > 1 && (inputs == 4 || inputs == 8) && (outputs == 4 || outputs == 8) && inputs <= outputs;
}

PanelShape sliding_shape(const WindowGeometry& g) {
  PanelShape shape;
  shape.taps = g.taps();
  shape.k = g.channels / g.groups;
  shape.cols = g.out_channels;
  return shape;
}

std::unique_ptr<Kernel> make_sliding_conv(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<SlidingConv>(call, g);
}

}  // namespace hetnn::kernels
