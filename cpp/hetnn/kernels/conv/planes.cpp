// Cuts convolutions over the planes of an image into rows and tiles.
#include "hetnn/kernels/conv/planes.h"

#include <algorithm>
#include <array>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/conv/planes_tile.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kMostChannels = 4;
// Products of one sum are summed one by one, as in other kernels.
constexpr int64_t kMostProducts = 256;

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

// Rows of the image that windows of an output row read, with zeros around them. What columns of the window as far apart
// as a stride read of a row stands side by side: of a stride of 2 the even columns, then the odd ones. The next output
// row takes the place of the rows that it no longer reads.
class PlaneRows {
 public:
  explicit PlaneRows(const WindowGeometry& g) : g_(g) {
    const int64_t vectors = (g.out_width + kPanel - 1) / kPanel * kPanel;
    phase_ = (vectors + (g.columns.reach() - 1) / g.columns.stride + kPanel) / kPanel * kPanel;
  }
  // One more row is where a row is padded.
  int64_t elems() const { return (g_.rows.reach() * g_.channels + 1) * row(); }

  // Of the rows of the padded image.
  void fill(const PlanesFunctions& functions, const float* image, Share rows, float* to) const {
    const int64_t plane = g_.height * g_.width;
    float* line = to + g_.rows.reach() * g_.channels * row();
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const int64_t from = y - g_.rows.before;
      for (int64_t c = 0; c < g_.channels; ++c) {
        float* at = to + (y % g_.rows.reach() * g_.channels + c) * row();
        if (from < 0 || from >= g_.height) {
          std::fill_n(at, row(), 0.0f);
          continue;
        }
        const bool apart = g_.columns.stride > 1;
        pad(image + c * plane + from * g_.width, apart ? line : at);
        if (apart) spread(functions, line, at);
      }
    }
  }

  // The factors of every product, of the output row's first pixel.
  void find_taps(int64_t oy, const float* rows, const float** taps) const {
    for (int64_t ky = 0; ky < g_.rows.kernel; ++ky) {
      const float* at = rows + (oy * g_.rows.stride + ky * g_.rows.dilation) % g_.rows.reach() * g_.channels * row();
      for (int64_t kx = 0; kx < g_.columns.kernel; ++kx) {
        const int64_t x = kx * g_.columns.dilation;
        const int64_t column = x % g_.columns.stride * phase_ + x / g_.columns.stride;
        for (int64_t c = 0; c < g_.channels; ++c) *taps++ = at + c * row() + column;
      }
    }
  }

 private:
  int64_t row() const { return phase_ * g_.columns.stride; }

  void pad(const float* from, float* to) const {
    const int64_t begin = std::min(g_.columns.before, row());
    const int64_t end = std::clamp(g_.columns.before + g_.width, begin, row());
    std::fill(to, to + begin, 0.0f);
    std::copy_n(from, end - begin, to + begin);
    std::fill(to + end, to + row(), 0.0f);
  }
  void spread(const PlanesFunctions& functions, const float* line, float* to) const {
    const int64_t stride = g_.columns.stride;
    if (stride == 2) return functions.halve(line, phase_, to, phase_);
    for (int64_t p = 0; p < stride; ++p)
      for (int64_t i = 0; i < phase_; ++i) to[p * phase_ + i] = line[i * stride + p];
  }

  WindowGeometry g_;
  int64_t phase_;
};

class PlanesConv final : public Kernel {
 public:
  PlanesConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        rows_(g),
        functions_(&planes_functions()),
        epilogue_(call, call.outputs[0]),
        bias_(call.params.integer("bias", 0) != 0),
        out_pitch_(call.outputs[0].pitch_elems),
        block_pixels_(even_part(g.out_width, kPlanesPixels, kPanel)),
        part_outputs_(even_part(kPanel, functions_->most_outputs)),
        last_part_outputs_(even_part(g.out_channels % kPanel, functions_->most_outputs)) {
    take_steps(call);
  }

  int64_t scratch_bytes(int threads) const override { return threads * thread_bytes(); }
  bool serial() const override { return g_.out_pixels() * g_.out_channels * products() < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* rows = reinterpret_cast<float*>(context.scratch + context.thread * thread_bytes());
    const Share share = share_of(g_.batch * g_.out_height, context.thread, context.threads);
    std::array<const float*, kMostProducts> taps;
    int64_t image = -1, filled = 0;
    for (int64_t number = share.begin; number < share.end; ++number) {
      const int64_t n = number / g_.out_height, oy = number % g_.out_height, first = oy * g_.rows.stride;
      if (n != image) filled = 0;
      image = n;
      const Share missing = {std::max(filled, first), first + g_.rows.reach()};
      rows_.fill(*functions_, floats(inputs[0]) + n * g_.channels * g_.height * g_.width, missing, rows);
      filled = missing.end;
      rows_.find_taps(oy, rows, taps.data());
      run_row(number * g_.out_width, taps.data(), inputs, reinterpret_cast<float*>(outputs[0]));
    }
  }

 private:
  // Parts of one size, so that the last one has sums enough to hide how long a multiply-add takes.
  static int64_t even_part(int64_t total, int64_t most, int64_t step = 1) {
    const int64_t parts = std::max<int64_t>(1, (total + most - 1) / most), steps = parts * step;
    return (total + steps - 1) / steps * step;
  }
  int64_t products() const { return g_.taps() * g_.channels; }
  int64_t thread_bytes() const { return (rows_.elems() * 4 + 63) / 64 * 64; }

  // A function of one value or of one a channel is computed before the tile is written.
  void take_steps(const KernelCall& call) {
    registers_ = epilogue_.take_register_part(false, RegisterFunctions::all);
    if (registers_.operand.row_stride != 0) {
      epilogue_ = EpiloguePlan(call, call.outputs[0]);
      registers_ = epilogue_.take_register_part(false);
    }
    if (registers_.function && !registers_.has_slopes()) function_ = block_function(*registers_.function);
  }

  void run_row(int64_t row_pixel, const float* const* taps, const std::byte* const* inputs, float* out) const {
    alignas(64) float sums[kPanel * kPlanesPixels];
    PlanesTile tile{};
    tile.taps = taps;
    tile.products = products();
    tile.slope_step = registers_.operand.col_step;
    tile.sums = sums;
    tile.bounded = !function_ && registers_.is_bounded();
    tile.lo = registers_.lo;
    tile.hi = registers_.hi;
    for (int64_t x = 0; x < g_.out_width; x += block_pixels_) {
      tile.first_pixel = x;
      tile.pixels = std::min(block_pixels_, g_.out_width - x);
      float* pixels = out + (row_pixel + x) * out_pitch_;
      for (int64_t channel = 0; channel < g_.out_channels; channel += kPanel) {
        tile.outputs = std::min(kPanel, g_.out_channels - channel);
        tile.part_outputs = tile.outputs == kPanel ? part_outputs_ : last_part_outputs_;
        tile.panel = floats(inputs[1]) + channel * tile.products;
        tile.bias = bias_ ? floats(inputs[2]) + channel : nullptr;
        tile.slopes = registers_.has_slopes() ? registers_.operand_of(inputs, channel) : nullptr;
        functions_->compute(tile);
        if (function_) apply_function(tile, inputs, channel);
        functions_->write(sums, tile.outputs, tile.pixels, pixels + channel, out_pitch_);
      }
      if (!epilogue_.empty())
        epilogue_.apply(pixels, out_pitch_, tile.pixels, g_.out_channels, row_pixel + x, 0, inputs);
    }
  }

  void apply_function(const PlanesTile& tile, const std::byte* const* inputs, int64_t channel) const {
    Block block{.in = tile.sums,
                .ld_in = kPlanesPixels,
                .out = tile.sums,
                .ld_out = kPlanesPixels,
                .rows = tile.outputs,
                .cols = tile.pixels};
    block.operand = registers_.operand_of(inputs, channel);
    block.ld_operand = registers_.operand.col_step;
    block.c0 = registers_.c0;
    block.c1 = registers_.c1;
    function_(block);
    if (!registers_.is_bounded()) return;
    block.c0 = registers_.lo;
    block.c1 = registers_.hi;
    bound_(block);
  }

  WindowGeometry g_;
  PlaneRows rows_;
  const PlanesFunctions* functions_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  BlockFunction function_ = nullptr, bound_ = block_function(ops::Function::clamp);
  bool bias_;
  int64_t out_pitch_;
  int64_t block_pixels_, part_outputs_, last_part_outputs_;
};

}  // namespace

Refusal refuse_planes(const WindowGeometry& g) {
  if (g.groups == 1 && g.channels <= kMostChannels && g.taps() * g.channels <= kMostProducts) return std::nullopt;
  return text("conv2d_planes takes up to ", kMostChannels, " channels of one group and ", kMostProducts,
              " products a sum; got ", g.channels, " channels, groups ", g.groups, ", ", g.taps(), " taps.");
}

std::unique_ptr<Kernel> make_planes_conv(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<PlanesConv>(call, g);
}

}  // namespace hetnn::kernels
