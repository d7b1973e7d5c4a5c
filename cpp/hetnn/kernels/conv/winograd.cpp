// Winograd convolution: tiles in, 36 products, tiles out.
#include "hetnn/kernels/conv/winograd.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/winograd_transform.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/micro.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/query/machine.h"

namespace hetnn::kernels {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t aligned_elems(int64_t elems) { return ceil_div(elems, 16) * 16; }

constexpr int64_t kLeastTiles = 12;
// Bytes of the transformed weights.
int64_t transformed_bytes(const WindowGeometry& g) {
  return kWinogradPoints * ceil_div(g.out_channels, kPanel) * g.channels * kPanel * 4;
}

bool fits(const WindowGeometry& g) {
  const auto fit = [](const ops::WindowAxis& axis) {
    return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
  };
  return fit(g.rows) && fit(g.columns) && g.groups == 1;
}

class WinogradConv final : public Kernel {
 public:
  WinogradConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        tiles_h_(ceil_div(g.out_height, kWinogradOutput)),
        tiles_w_(ceil_div(g.out_width, kWinogradOutput)),
        tiles_(g.batch * tiles_h_ * tiles_w_),
        panels_((g.out_channels + kPanel - 1) / kPanel),
        in_stride_(aligned_elems(g.channels)),
        out_stride_(panels_ * kPanel),
        epilogue_(call, call.outputs[0]),
        registers_(epilogue_.take_register_part(true, RegisterFunctions::slopes)),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        zeros_(static_cast<size_t>(aligned_elems(g.channels)) * 4),
        micro_(&micro_table()),
        transforms_(&winograd_table()) {
    const WinogradSplit split = winograd_split(g, this_machine());
    block_tiles_ = split.block_tiles;
    shared_ = split.shared;
    width_ = micro_->panels_for(block_tiles_, panels_, 2);
  }

  int64_t scratch_bytes(int threads) const override {
    return (shared_ ? 1 : threads) * block_bytes() + threads * table_bytes();
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t blocks = ceil_div(tiles_, block_tiles_);
    const Team alone{0, 1};
    const Team all{context.thread, context.threads};
    std::byte* tables = context.scratch + (shared_ ? 1 : context.threads) * block_bytes();
    const auto** table = reinterpret_cast<const std::byte**>(tables + context.thread * table_bytes());
    if (!shared_) {
      // Every thread takes whole blocks: what it writes it reads again itself.
      auto* scratch = reinterpret_cast<float*>(context.scratch + context.thread * block_bytes());
      const Share share = share_of(tiles_, context.thread, context.threads);
      const int64_t own = ceil_div(share.end - share.begin, block_tiles_);
      for (int64_t i = 0; i < own; ++i) {
        const int64_t begin = share.begin + (share.end - share.begin) * i / own;
        const int64_t end = share.begin + (share.end - share.begin) * (i + 1) / own;
        transform_input(begin, end, alone, inputs, scratch);
        multiply(end - begin, alone, inputs, scratch, table);
        transform_output(begin, end, alone, inputs, outputs, scratch);
      }
      return;
    }
    auto* scratch = reinterpret_cast<float*>(context.scratch);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t begin = tiles_ * i / blocks, end = tiles_ * (i + 1) / blocks;
      transform_input(begin, end, all, inputs, scratch);
      context.barrier.arrive_and_wait();
      multiply(end - begin, all, inputs, scratch, table);
      context.barrier.arrive_and_wait();
      transform_output(begin, end, all, inputs, outputs, scratch);
    }
  }

 private:
  struct Team {
    int thread, threads;
  };

  // Scratch: inputs [36][block][in_stride], then products [36][block][out_stride].
  int64_t block_bytes() const { return kWinogradPoints * block_tiles_ * (in_stride_ + out_stride_) * 4; }
  int64_t table_bytes() const {
    return ceil_div(block_tiles_ * static_cast<int64_t>(sizeof(const std::byte*)), 64) * 64;
  }
  int64_t in_point() const { return block_tiles_ * in_stride_; }
  int64_t out_point() const { return block_tiles_ * out_stride_; }
  float* products(float* scratch) const { return scratch + kWinogradPoints * in_point(); }

  void transform_input(int64_t begin, int64_t end, Team team, const std::byte* const* inputs, float* scratch) const {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    const Share share = share_of(end - begin, team.thread, team.threads);
    const float* pixels[kWinogradPoints];
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t tile = begin + i;
      const int64_t n = tile / (tiles_h_ * tiles_w_);
      const int64_t iy = tile / tiles_w_ % tiles_h_ * kWinogradOutput - g_.rows.before;
      const int64_t ix = tile % tiles_w_ * kWinogradOutput - g_.columns.before;
      for (int64_t r = 0; r < kWinogradInput; ++r) {
        const bool row_inside = iy + r >= 0 && iy + r < g_.height;
        const float* row = x + ((n * g_.height + iy + r) * g_.width + ix) * in_pitch_;
        for (int64_t c = 0; c < kWinogradInput; ++c)
          pixels[r * kWinogradInput + c] =
              row_inside && ix + c >= 0 && ix + c < g_.width ? row + c * in_pitch_ : zeros_.as<float>();
      }
      transforms_->input({pixels, scratch + i * in_stride_, in_point(), g_.channels});
    }
  }

  // A unit of work is one point and a tile's width of panels: its weights are read once, by one thread.
  void multiply(int64_t rows, Team team, const std::byte* const* inputs, float* scratch,
                const std::byte** table) const {
    const auto* weights = reinterpret_cast<const float*>(inputs[1]);
    const int64_t panel_elems = g_.channels * kPanel;
    const int64_t units_per_point = ceil_div(panels_, width_);
    const int64_t tiles = ceil_div(rows, micro_->max_rows[width_]);
    const Share share = share_of(kWinogradPoints * units_per_point, team.thread, team.threads);
    const auto panels_of = [&](int64_t unit) {
      return weights + (unit / units_per_point * panels_ + unit % units_per_point * width_) * panel_elems;
    };
    int64_t table_point = -1;
    alignas(64) float sums[kMaxTileElems];
    MicroTile part(sums);
    part.taps = 1;
    part.k = g_.channels;
    part.rows_stride = rows;
    part.even_bytes = in_stride_ * 4;
    part.panel_stride = panel_elems;
    part.ld_out = out_stride_;
    for (int64_t unit = share.begin; unit < share.end; ++unit) {
      const int64_t point = unit / units_per_point, first_panel = unit % units_per_point * width_;
      if (point != table_point) {
        const float* base = scratch + point * in_point();
        for (int64_t r = 0; r < rows; ++r) table[r] = reinterpret_cast<const std::byte*>(base + r * in_stride_);
        table_point = point;
      }
      const int64_t width = std::min<int64_t>(width_, panels_ - first_panel);
      part.panel = panels_of(unit);
      part.cols = width * kPanel;
      const bool more = unit + 1 < share.end;
      const float* next = more ? panels_of(unit + 1) : part.panel;
      float* out = products(scratch) + point * out_point() + first_panel * kPanel;
      // Each tile fetches its part of the next panels.
      const int64_t fetch_step = std::min(kPanel, ceil_div(kPanel * width, tiles));
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t begin = rows * i / tiles, end = rows * (i + 1) / tiles;
        part.rows = table + begin;
        part.out = out + begin * out_stride_;
        const bool fetch = more && i * fetch_step < width * kPanel;
        part.prefetch = next + (fetch ? i * fetch_step * g_.channels : 0);
        part.prefetch_step_bytes = fetch ? fetch_step * 4 : 0;
        micro_->run[width][end - begin](part);
      }
    }
  }

  void transform_output(int64_t begin, int64_t end, Team team, const std::byte* const* inputs,
                        std::byte* const* outputs, float* scratch) const {
    auto* y = reinterpret_cast<float*>(outputs[0]);
    const Share share = share_of(end - begin, team.thread, team.threads);
    WinogradOutputTile t{};
    t.point_stride = out_point();
    t.bias = bias_ ? reinterpret_cast<const float*>(inputs[2]) : nullptr;
    t.out_pixel = out_pitch_;
    t.out_row = g_.out_width * out_pitch_;
    t.addend_pixel = registers_.addend_pitch;
    t.addend_scale = registers_.addend_scale;
    t.addend_row = g_.out_width * registers_.addend_pitch;
    t.channels = g_.out_channels;
    t.slopes = registers_.has_slopes() ? registers_.operand_of(inputs, 0) : nullptr;
    t.slope_step = registers_.operand.col_step;
    t.lo = registers_.lo;
    t.hi = registers_.hi;
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t tile = begin + i;
      const int64_t n = tile / (tiles_h_ * tiles_w_);
      const int64_t oy = tile / tiles_w_ % tiles_h_ * kWinogradOutput, ox = tile % tiles_w_ * kWinogradOutput;
      const int64_t pixel = (n * g_.out_height + oy) * g_.out_width + ox;
      t.from = products(scratch) + i * out_stride_;
      t.out = y + pixel * out_pitch_;
      t.addend = registers_.addend_input < 0 ? nullptr
                                             : reinterpret_cast<const float*>(inputs[registers_.addend_input]) +
                                                   pixel * registers_.addend_pitch;
      t.rows = std::min<int64_t>(kWinogradOutput, g_.out_height - oy);
      t.cols = std::min<int64_t>(kWinogradOutput, g_.out_width - ox);
      if (const int64_t channel = transforms_->output(t); channel < t.channels) {
        sum_directly(n, oy, ox, channel, inputs, products(scratch) + i * out_stride_);
        transforms_->output_of_sums(t, channel);
      }
      if (epilogue_.empty()) continue;
      for (int64_t r = 0; r < t.rows; ++r)
        epilogue_.apply(t.out + r * t.out_row, out_pitch_, t.cols, g_.out_channels, pixel + r * g_.out_width, 0,
                        inputs);
    }
  }

  // Whether a channel of the pixel is not a number, which makes that of all outputs that read it.
  bool has_nan(const float* pixel) const {
    bool found = false;
    for (int64_t c = 0; c < g_.channels; ++c) found |= pixel[c] != pixel[c];
    return found;
  }

  // Whether every output of a tile reads such a pixel.
  bool are_nan(int64_t n, int64_t oy, int64_t ox, const float* x) const {
    uint64_t nan = 0;  // pixels, a byte a row of them
    for (int64_t row = 0; row < kWinogradInput; ++row)
      for (int64_t col = 0; col < kWinogradInput; ++col) {
        const int64_t iy = oy + row - g_.rows.before, ix = ox + col - g_.columns.before;
        const bool inside = iy >= 0 && iy < g_.height && ix >= 0 && ix < g_.width;
        if (inside && has_nan(x + ((n * g_.height + iy) * g_.width + ix) * in_pitch_)) nan |= 1ULL << (row * 8 + col);
      }
    constexpr uint64_t kWindow = 0x070707;
    for (int64_t row = 0; row < std::min<int64_t>(kWinogradOutput, g_.out_height - oy); ++row)
      for (int64_t col = 0; col < std::min<int64_t>(kWinogradOutput, g_.out_width - ox); ++col)
        if ((nan & kWindow << (row * 8 + col)) == 0) return false;
    return true;
  }

  // The sums of a tile's outputs for the channels from one on, in the place of its products.
  void sum_directly(int64_t n, int64_t oy, int64_t ox, int64_t channel, const std::byte* const* inputs,
                    float* sums) const {
    constexpr int64_t kOutputs = kWinogradOutput * kWinogradOutput, kTaps = 9;
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    if (are_nan(n, oy, ox, x)) {
      for (int64_t output = 0; output < kOutputs; ++output)
        std::fill_n(sums + output * out_point() + channel, out_stride_ - channel,
                    std::numeric_limits<float>::quiet_NaN());
      return;
    }
    const auto* weights = reinterpret_cast<const float*>(inputs[1] + transformed_bytes(g_));
    const std::byte* pixels[kTaps * kOutputs];
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      for (int64_t output = 0; output < kOutputs; ++output) {
        const int64_t iy = oy + output / kWinogradOutput + tap / 3 - g_.rows.before;
        const int64_t ix = ox + output % kWinogradOutput + tap % 3 - g_.columns.before;
        const bool inside = iy >= 0 && iy < g_.height && ix >= 0 && ix < g_.width;
        const float* pixel = inside ? x + ((n * g_.height + iy) * g_.width + ix) * in_pitch_ : zeros_.as<float>();
        pixels[tap * kOutputs + output] = reinterpret_cast<const std::byte*>(pixel);
      }
    }
    alignas(64) float room[kMaxTileElems];
    MicroTile part(room);
    part.rows_stride = kOutputs;
    part.taps = kTaps;
    part.k = g_.channels;
    part.ld_out = out_point();
    part.panel_stride = kTaps * g_.channels * kPanel;
    for (int64_t panel = channel / kPanel; panel < panels_; panel += width_) {
      const auto width = static_cast<int>(std::min<int64_t>(width_, panels_ - panel));
      part.cols = width * kPanel;
      part.panel = weights + panel * part.panel_stride;
      part.prefetch = part.panel;
      const int64_t most = std::min<int64_t>(micro_->max_rows[width], kOutputs / 2);
      for (int64_t begin = 0; begin < kOutputs; begin += most) {
        part.rows = pixels + begin;
        part.out = sums + begin * out_point() + panel * kPanel;
        micro_->run[width][std::min(most, kOutputs - begin)](part);
      }
    }
  }

  WindowGeometry g_;
  int64_t tiles_h_, tiles_w_, tiles_;
  int64_t panels_;
  int64_t in_stride_, out_stride_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  AlignedBuffer zeros_;
  const MicroTable* micro_;
  const WinogradTable* transforms_;
  int64_t block_tiles_ = 1;
  bool shared_ = false;
  int width_ = 1;
};

// U = G w G^T in double, then w; a part is sixteen columns of all 36 matrices and of w.
class WinogradPacker final : public Packer {
 public:
  explicit WinogradPacker(const WindowGeometry& g)
      : channels_(g.channels),
        out_channels_(g.out_channels),
        itself_(direct_shape(g), PackStrides{0, g.channels * 9, 1, 9}) {
    // Row i of G is (1, p, p^2) / product of (p - q) over the other finite points q; the last (0, 0, 1).
    const double points[5] = {0, kWinogradA, -kWinogradA, kWinogradB, -kWinogradB};
    for (int i = 0; i < 5; ++i) {
      double divisor = 1;
      for (int j = 0; j < 5; ++j)
        if (j != i) divisor *= points[i] - points[j];
      for (int power = 0; power < 3; ++power)
        transform_[i][power] = (power == 0 ? 1.0 : power == 1 ? points[i] : points[i] * points[i]) / divisor;
    }
    transform_[5][2] = 1;
  }

  int64_t packed_bytes() const override { return kWinogradPoints * point_elems() * 4 + itself_.packed_bytes(); }
  int64_t parts() const override { return ceil_div(out_channels_, kPanel); }
  void pack(Share parts, const std::byte* weight, std::byte* packed) const override {
    auto* to = reinterpret_cast<float*>(packed);
    for (int64_t o = parts.begin * kPanel; o < parts.end * kPanel; ++o)
      o < out_channels_ ? pack_filter(o, reinterpret_cast<const float*>(weight), to) : clear_filter(o, to);
    itself_.pack(parts, weight, packed + kWinogradPoints * point_elems() * 4);
  }

 private:
  int64_t point_elems() const { return ceil_div(out_channels_, kPanel) * channels_ * kPanel; }
  float* place(int64_t o, int64_t c, float* to) const {
    return to + (o / kPanel * channels_ + c) * kPanel + o % kPanel;
  }

  void clear_filter(int64_t o, float* to) const {
    for (int64_t c = 0; c < channels_; ++c)
      for (int point = 0; point < kWinogradPoints; ++point) place(o, c, to)[point * point_elems()] = 0;
  }

  void pack_filter(int64_t o, const float* weight, float* to) const {
    for (int64_t c = 0; c < channels_; ++c) {
      const float* w = weight + (o * channels_ + c) * 9;
      double half[kWinogradInput][3];
      for (int i = 0; i < kWinogradInput; ++i)
        for (int col = 0; col < 3; ++col)
          half[i][col] = transform_[i][0] * w[col] + transform_[i][1] * w[3 + col] + transform_[i][2] * w[6 + col];
      float* at = place(o, c, to);
      for (int i = 0; i < kWinogradInput; ++i)
        for (int j = 0; j < kWinogradInput; ++j)
          at[(i * kWinogradInput + j) * point_elems()] = static_cast<float>(
              half[i][0] * transform_[j][0] + half[i][1] * transform_[j][1] + half[i][2] * transform_[j][2]);
    }
  }

  int64_t channels_, out_channels_;
  PanelPacker itself_;
  double transform_[kWinogradInput][3] = {};
};

}  // namespace

WinogradSplit winograd_split(const WindowGeometry& g, const Machine& machine) {
  // Both sides of the products of one block of tiles, for all 36 points, are to stay in the second-level cache. Weights
  // of a few times its size are read once by all threads together rather than once by each.
  const int64_t cache_bytes = machine.cache_bytes[kSecondLevel];
  const int64_t block_bytes = cache_bytes / 4 * 3, shared_bytes = 3 * cache_bytes;
  constexpr int64_t kSharedTiles = 64;
  WinogradSplit out;
  out.tiles = g.batch * ceil_div(g.out_height, kWinogradOutput) * ceil_div(g.out_width, kWinogradOutput);
  out.weight_bytes = transformed_bytes(g);
  const int64_t tile_bytes =
      kWinogradPoints * (aligned_elems(g.channels) + aligned_elems(g.out_channels)) * int64_t{sizeof(float)};
  const int64_t fitting = std::max(kLeastTiles, block_bytes / std::max<int64_t>(tile_bytes, 1));
  const int64_t blocks = std::max<int64_t>(1, ceil_div(out.tiles, fitting));
  out.block_tiles = ceil_div(out.tiles, blocks);
  out.shared = out.weight_bytes > shared_bytes;
  if (out.shared) out.block_tiles = std::min(out.tiles, std::max(out.block_tiles, kSharedTiles));
  return out;
}

Refusal refuse_winograd(const WindowGeometry& g) {
  if (fits(g)) return std::nullopt;
  return text("winograd takes 3x3 windows of stride 1, dilation 1 and one group; got ", g.rows.kernel, "x",
              g.columns.kernel, ", stride ", g.rows.stride, "x", g.columns.stride, ", dilation ", g.rows.dilation, "x",
              g.columns.dilation, ", groups ", g.groups, ".");
}

std::unique_ptr<Kernel> make_winograd_conv(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<WinogradConv>(call, g);
}

std::unique_ptr<Packer> make_winograd_packer(const WindowGeometry& g) {
  HETNN_ASSERT(fits(g));
  return std::make_unique<WinogradPacker>(g);
}

}  // namespace hetnn::kernels
