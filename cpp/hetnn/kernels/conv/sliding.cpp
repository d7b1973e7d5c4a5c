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

// Output columns whose window lies inside the image from left to right.
Share inner_columns(const WindowGeometry& g) {
  const int64_t begin = g.columns.windows(0, g.out_width, g.width).begin;
  return {begin, std::max(begin, g.columns.windows(g.columns.kernel - 1, g.out_width, g.width).end)};
}

// How many of its columns a window is from the next; 0: no whole number.
int64_t step_of(const ops::WindowAxis& axis) {
  return axis.stride % axis.dilation == 0 ? axis.stride / axis.dilation : 0;
}

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

class SlidingConv final : public Kernel {
 public:
  SlidingConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        shape_(sliding_shape(g)),
        epilogue_(call, call.outputs[0]),
        registers_(epilogue_.take_register_part(false, RegisterFunctions::slopes)),
        functions_(g.depthwise() ? depthwise_functions(g.columns.kernel, step_of(g.columns), g.out_width)
                                 : grouped_functions(g.out_channels / g.groups, grouped_row_step(g), g.out_width)),
        rows_(functions_.pair != nullptr && step_of(g.rows) == 1 ? 2 : 1),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        panels_(shape_.panels_per_group()) {}

  bool serial() const override { return g_.out_pixels() * shape_.cols * shape_.k * shape_.taps < kSmallProducts; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const ThreadGrid grid = sliding_grid(g_, context.threads);
    const Share rows = share_of(g_.batch * g_.out_height, context.thread % grid.row_parts, grid.row_parts);
    const Share panels = share_of(panels_, context.thread / grid.row_parts, grid.col_parts);
    const int64_t count = panels.end - panels.begin;
    if (count == 0) return;  // there are more threads than panels
    const int64_t blocks = std::clamp<int64_t>(count * shape_.panel_bytes() / kBlockWeights_bytes, 1, count);
    for (int64_t block = 0; block < blocks; ++block) {
      const Share channels{(panels.begin + count * block / blocks) * kPanel,
                           std::min((panels.begin + count * (block + 1) / blocks) * kPanel, shape_.cols)};
      for (int64_t row = rows.begin, together = 0; row < rows.end; row += together) {
        const int64_t oy = row % g_.out_height;
        together = std::min({rows_, rows.end - row, g_.out_height - oy});
        run_rows(row / g_.out_height, oy, together, channels, inputs, reinterpret_cast<float*>(outputs[0]));
      }
    }
  }

 private:
  // Some channels of `rows` output rows, one or two.
  void run_rows(int64_t n, int64_t oy, int64_t rows, Share channels, const std::byte* const* inputs, float* out) const {
    const int64_t first_input = channels.begin / (g_.out_channels / g_.groups) * shape_.k;
    SlidingTile tile{};
    tile.ky_stride = g_.rows.dilation * g_.width * in_pitch_;
    tile.kx_stride = g_.columns.dilation * in_pitch_;
    tile.pixel_stride = g_.columns.stride * in_pitch_;
    tile.kernel_h = g_.rows.kernel;
    tile.kernel_w = g_.columns.kernel;
    tile.panel_stride = shape_.panel_bytes() / 4;
    tile.panels = floats(inputs[1]) + channels.begin / kPanel * tile.panel_stride;
    tile.bias = bias_ ? floats(inputs[2]) + channels.begin : nullptr;
    tile.ld_out = out_pitch_;
    tile.out_row = g_.out_width * out_pitch_;
    tile.channels = channels.end - channels.begin;
    tile.input_channels = g_.channels - first_input;
    tile.group_inputs = shape_.k;
    tile.group_outputs = g_.out_channels / g_.groups;
    tile.slopes = registers_.has_slopes() ? registers_.operand_of(inputs, channels.begin) : nullptr;
    tile.slope_step = registers_.operand.col_step;
    tile.lo = registers_.lo;
    tile.hi = registers_.hi;
    const float* image = floats(inputs[0]) + n * g_.height * g_.width * in_pitch_ + first_input;
    const auto compute = [&](SlidingFunction function, int64_t y, int64_t ox, ops::Interval taps) {
      tile.ky_begin = taps.begin;
      tile.ky_end = taps.end;
      tile.in = image + (g_.rows.begin(y) * g_.width + g_.columns.begin(ox)) * in_pitch_;
      tile.out = out + ((n * g_.out_height + y) * g_.out_width + ox) * out_pitch_ + channels.begin;
      function(tile);
    };
    ops::WindowAxis both = g_.rows;  // the windows of two rows, a window row apart
    ++both.kernel;
    const Share inner = inner_columns(g_);
    ops::WindowAxis all = g_.columns;  // the columns of all windows of a tile
    all.kernel = functions_.columns;
    for (int64_t ox = 0, count = 1; ox < g_.out_width; ox += count) {
      const bool may_leave = functions_.columns > 0;
      if (may_leave) ox = std::min(ox, g_.out_width - functions_.pixels);
      const bool uncut = ox >= inner.begin && ox + functions_.pixels <= inner.end;
      const bool side_by_side = may_leave || uncut;
      count = side_by_side ? functions_.pixels : 1;
      const ops::Interval columns = may_leave ? all.taps(ox, g_.width) : g_.columns.taps(ox, g_.width);
      tile.kx_begin = columns.begin;
      tile.kx_end = columns.end;
      if (side_by_side && rows == 2) {
        compute(functions_.pair, oy, ox, both.taps(oy, g_.height));
      } else {
        for (int64_t y = oy; y < oy + rows; ++y)
          compute(side_by_side ? functions_.uncut : functions_.one, y, ox, g_.rows.taps(y, g_.height));
      }
      for (int64_t y = oy; y < oy + rows && !epilogue_.empty(); ++y) {
        const int64_t pixel = (n * g_.out_height + y) * g_.out_width + ox;
        epilogue_.apply(out + pixel * out_pitch_ + channels.begin, out_pitch_, count, tile.channels, pixel,
                        channels.begin, inputs);
      }
    }
  }

  WindowGeometry g_;
  PanelShape shape_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  SlidingFunctions functions_;
  int64_t rows_;  // that are computed together
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  int64_t panels_;
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

ThreadGrid sliding_grid(const WindowGeometry& g, int threads) {
  const PanelShape shape = sliding_shape(g);
  const auto products = static_cast<double>(g.out_width * shape.k * shape.taps);
  const auto bytes = static_cast<double>(4 * (g.batch * g.height * g.width * g.channels + g.out_pixels() * shape.cols));
  return thread_grid(threads, [&](ThreadGrid grid) {
    const int64_t rows = g.batch * g.out_height, panels = shape.panels_per_group();
    const int64_t own = (rows + grid.row_parts - 1) / grid.row_parts * ((panels + grid.col_parts - 1) / grid.col_parts);
    return static_cast<double>(own) * products + waiting_cycles(grid, bytes);
  });
}

int64_t grouped_row_step(const WindowGeometry& g) {
  const ops::WindowAxis& axis = g.columns;
  const int64_t after = axis.begin(g.out_width - 1) + axis.reach() - g.width;
  const bool leave_by_one = axis.before <= axis.dilation && after <= axis.dilation;
  return axis.kernel == 3 && step_of(axis) <= 2 && leave_by_one && g.out_width >= kLeastRow ? step_of(axis) : 0;
}

int64_t grouped_pixels_together(const WindowGeometry& g) {
  constexpr int64_t kPixels = 8;  // of AVX-512, which work is counted for
  const Share inner = inner_columns(g);
  return (inner.end - inner.begin) / kPixels * kPixels;
}

std::unique_ptr<Kernel> make_sliding_conv(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<SlidingConv>(call, g);
}

}  // namespace hetnn::kernels
