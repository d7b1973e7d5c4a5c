// Winograd convolution: tiles in, products of 36, 16 or 6 points, tiles out.
#include "hetnn/kernels/conv/winograd.h"

#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/winograd_non_finite.h"
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
// Of so many channels the next tile's pixels are asked for, which of more come in time by themselves.
constexpr int64_t kMostFetched = 64;
// Of so many channels weights are transformed before they are multiplied.
constexpr int64_t kChannelsAtOnce = 64;
constexpr int64_t kApart = kPointsApart_bytes / static_cast<int64_t>(sizeof(float));
// From one point to the next of a tile's width of panels so transformed.
constexpr int64_t kWeightsPoint = 2 * kChannelsAtOnce * kPanel + kApart;

bool fits(const WindowGeometry& g) {
  const auto fit = [](const ops::WindowAxis& axis) {
    return (axis.kernel == 3 || axis.kernel == 1) && axis.stride == 1;
  };
  return fit(g.rows) && fit(g.columns) && g.taps() > 1 && g.groups == 1;
}

class WinogradConv final : public Kernel {
 public:
  WinogradConv(const KernelCall& call, const WindowGeometry& g, int64_t side)
      : g_(g),
        tiles_(g, side),
        count_(tiles_.count()),
        panels_((g.out_channels + kPanel - 1) / kPanel),
        in_stride_(aligned_elems(g.channels)),
        out_stride_(panels_ * kPanel),
        epilogue_(call, call.outputs[0]),
        registers_(epilogue_.take_register_part(true, RegisterFunctions::slopes)),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        micro_(&micro_table()),
        transforms_(&winograd_table(side, tiles_.are_lines())),
        non_finite_(g, side, in_pitch_, in_stride_, out_stride_) {
    const WinogradSplit split = winograd_split(g, side, this_machine());
    block_tiles_ = split.block_tiles;
    whole_tiles_ = split.whole_tiles;
    shared_ = split.shared;
    width_ = micro_->panels_for(block_tiles_, panels_, 2);
  }

  int64_t scratch_bytes(int threads) const override {
    return (shared_ ? 1 : threads) * block_bytes() + threads * own_bytes();
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t blocks = ceil_div(count_, block_tiles_);
    const Team alone{0, 1};
    const Team all{context.thread, context.threads};
    std::byte* const own =
        context.scratch + (shared_ ? 1 : context.threads) * block_bytes() + context.thread * own_bytes();
    const auto** table = reinterpret_cast<const std::byte**>(own);
    const Placed placed{reinterpret_cast<int64_t*>(own + table_bytes() / 2),
                        reinterpret_cast<float*>(own + table_bytes())};
    auto* const weights = reinterpret_cast<float*>(own + table_bytes() + non_finite_.room_bytes());
    if (!shared_) {
      // Every thread takes whole blocks: what it writes it reads again itself.
      auto* scratch = reinterpret_cast<float*>(context.scratch + context.thread * block_bytes());
      const Share share = share_of(count_, context.thread, context.threads);
      const bool whole = share.end - share.begin <= whole_tiles_;
      const int64_t own_blocks = whole ? 1 : ceil_div(share.end - share.begin, block_tiles_);
      for (int64_t i = 0; i < own_blocks; ++i) {
        const int64_t begin = share.begin + (share.end - share.begin) * i / own_blocks;
        const int64_t end = share.begin + (share.end - share.begin) * (i + 1) / own_blocks;
        const int64_t multiplied = transform_input(begin, end, alone, inputs, scratch, placed);
        multiply(multiplied, alone, inputs, scratch, table, weights);
        transform_output(begin, end, alone, inputs, outputs, scratch, placed, multiplied);
      }
      return;
    }
    auto* scratch = reinterpret_cast<float*>(context.scratch);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t begin = count_ * i / blocks, end = count_ * (i + 1) / blocks;
      transform_input(begin, end, all, inputs, scratch, placed);
      context.barrier.arrive_and_wait();
      multiply(end - begin, all, inputs, scratch, table, weights);
      context.barrier.arrive_and_wait();
      transform_output(begin, end, all, inputs, outputs, scratch, placed, end - begin);
    }
  }

 private:
  struct Team {
    int thread, threads;
  };

  // Which tile lies in which place of a block, and room for one that has elements that are not finite.
  struct Placed {
    int64_t* tiles;
    float* room;
  };
  // Of a tile in a block: it was transformed without its elements that are not finite.
  static constexpr int64_t kNonFinite = int64_t{1} << 62;

  using Place = WinogradTiles::Place;
  // Scratch: inputs [points][block][in_stride], then products [points][block][out_stride].
  int64_t block_bytes() const { return tiles_.points() * (in_point() + out_point()) * 4; }
  // Of a block: pointers to rows, then which tile lies where.
  int64_t table_bytes() const {
    return 2 * ceil_div(whole_tiles_ * static_cast<int64_t>(sizeof(const std::byte*)), 64) * 64;
  }
  // Of a thread: the table, room for a tile that is not finite, and transformed weights.
  int64_t own_bytes() const {
    return table_bytes() + non_finite_.room_bytes() +
           (tiles_.store_weights() ? 0 : tiles_.points() * kWeightsPoint * 4);
  }
  int64_t in_point() const { return whole_tiles_ * in_stride_ + kApart; }
  int64_t out_point() const { return whole_tiles_ * out_stride_ + kApart; }
  float* products(float* scratch) const { return scratch + tiles_.points() * in_point(); }

  // Each tile has its place in the block. Those that will be summed directly, many of whose elements are not finite,
  // come behind those that are multiplied, as many as are returned; of a block that all threads share, they stay.
  int64_t transform_input(int64_t begin, int64_t end, Team team, const std::byte* const* inputs, float* scratch,
                          Placed placed) const {
    const Share share = share_of(end - begin, team.thread, team.threads);
    int64_t place = share.begin, last = share.end;
    const float *room[2][kWinogradPoints], **pixels = room[0], **next = room[1];
    const auto find_pixels = [&](int64_t tile, const float** of_tile) {
      non_finite_.find_pixels(tiles_.place_of(tile), inputs[0], of_tile);
    };
    if (share.begin < share.end) find_pixels(begin + share.begin, next);
    for (int64_t i = share.begin; i < share.end; ++i) {
      std::swap(pixels, next);
      find_pixels(begin + std::min(i + 1, share.end - 1), next);
      const WinogradInputTile tile{pixels, g_.channels <= kMostFetched ? next : nullptr, scratch + place * in_stride_,
                                   in_point(), g_.channels};
      const bool finite = transforms_->input(tile);
      if (finite || non_finite_.transform(tile, placed.room)) {
        placed.tiles[place++] = (begin + i) | (finite ? 0 : kNonFinite);
      } else {
        placed.tiles[shared_ ? place++ : --last] = begin + i;
      }
    }
    return place;
  }

  void multiply(int64_t rows, Team team, const std::byte* const* inputs, float* scratch, const std::byte** table,
                float* room) const {
    if (rows == 0) return;
    if (tiles_.store_weights()) {
      multiply_transformed(rows, team, inputs, scratch, table);
    } else {
      multiply_transforming(rows, team, inputs, scratch, table, room);
    }
  }

  // A unit of work is one point and a tile's width of panels: its weights are read once, by one thread.
  void multiply_transformed(int64_t rows, Team team, const std::byte* const* inputs, float* scratch,
                            const std::byte** table) const {
    const auto* weights = reinterpret_cast<const float*>(inputs[1]);
    const int64_t panel_elems = g_.channels * kPanel;
    const int64_t units_per_point = ceil_div(panels_, width_);
    const int64_t tiles = ceil_div(rows, micro_->max_rows[width_]);
    const Share share = share_of(tiles_.points() * units_per_point, team.thread, team.threads);
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

  // A unit of work is a tile's width of panels: of some channels after the other its weights are transformed and
  // multiplied for all points, while the next ones come near.
  void multiply_transforming(int64_t rows, Team team, const std::byte* const* inputs, float* scratch,
                             const std::byte** table, float* room) const {
    const auto* weights = reinterpret_cast<const float*>(inputs[1]);
    const int64_t tap_elems = g_.channels * kPanel, panel_elems = g_.taps() * tap_elems;
    const int64_t tiles = ceil_div(rows, micro_->max_rows[width_]);
    const Share units = share_of(ceil_div(panels_, width_), team.thread, team.threads);
    for (int64_t r = 0; r < rows; ++r) table[r] = reinterpret_cast<const std::byte*>(scratch + r * in_stride_);
    alignas(64) float sums[kMaxTileElems];
    MicroTile part(sums);
    part.taps = 1;
    part.rows_stride = rows;
    part.even_bytes = in_stride_ * 4;
    part.ld_out = part.ld_addend = out_stride_;
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      const int64_t panel = unit * width_, width = std::min<int64_t>(width_, panels_ - panel);
      part.cols = width * kPanel;
      for (int64_t channel = 0; channel < g_.channels; channel += kChannelsAtOnce) {
        part.k = std::min(kChannelsAtOnce, g_.channels - channel);
        part.panel_stride = part.k * kPanel;
        const float* const from = weights + panel * panel_elems + channel * kPanel;
        for (int64_t i = 0; i < width; ++i)
          transforms_->weights(
              {from + i * panel_elems, tap_elems, part.panel_stride, room + i * part.panel_stride, kWeightsPoint});
        const bool ends = part.k == g_.channels - channel;
        const float* const next = ends ? weights + (panel + width) * panel_elems : from + part.panel_stride;
        const int64_t fetches = ends && unit + 1 == units.end ? 0 : width * g_.taps();
        for (int64_t point = 0, call = 0; point < tiles_.points(); ++point) {
          part.panel = room + point * kWeightsPoint;
          part.row_offset = point * in_point() + channel;
          for (int64_t i = 0; i < tiles; ++i, ++call) {
            const int64_t begin = rows * i / tiles, end = rows * (i + 1) / tiles;
            part.rows = table + begin;
            part.out = products(scratch) + point * out_point() + begin * out_stride_ + panel * kPanel;
            part.addend = channel > 0 ? part.out : nullptr;
            part.prefetch = call < fetches ? next + call * tap_elems : part.panel;
            part.prefetch_step_bytes = call < fetches ? kPanel * 4 : 0;
            micro_->run[width][end - begin](part);
          }
        }
      }
    }
  }

  // So many places of the block were multiplied.
  void transform_output(int64_t begin, int64_t end, Team team, const std::byte* const* inputs,
                        std::byte* const* outputs, float* scratch, Placed placed, int64_t multiplied) const {
    auto* y = reinterpret_cast<float*>(outputs[0]);
    const Share share = share_of(end - begin, team.thread, team.threads);
    // Pixels from one output to the next. A line has one row, whichever way it lies.
    const int64_t row_step = tiles_.rows.step * g_.out_width;
    const bool upright = tiles_.columns.inputs == 1;
    const int64_t next = upright ? row_step : tiles_.columns.step;
    WinogradOutputTile t{};
    t.bias = bias_ ? reinterpret_cast<const float*>(inputs[2]) : nullptr;
    t.out_pixel = next * out_pitch_;
    t.out_row = row_step * out_pitch_;
    t.addend_pixel = next * registers_.addend_pitch;
    t.addend_scale = registers_.addend_scale;
    t.addend_row = row_step * registers_.addend_pitch;
    t.channels = g_.out_channels;
    t.slopes = registers_.has_slopes() ? registers_.operand_of(inputs, 0) : nullptr;
    t.slope_step = registers_.operand.col_step;
    t.lo = registers_.lo;
    t.hi = registers_.hi;
    for (int64_t i = share.begin; i < share.end; ++i) {
      const bool non_finite = (placed.tiles[i] & kNonFinite) != 0;
      const Place at = tiles_.place_of(placed.tiles[i] & ~kNonFinite);
      const int64_t pixel = (at.n * g_.out_height + at.y) * g_.out_width + at.x;
      t.from = products(scratch) + i * out_stride_;
      t.point_stride = out_point();
      t.out = y + pixel * out_pitch_;
      t.addend = registers_.addend_input < 0 ? nullptr
                                             : reinterpret_cast<const float*>(inputs[registers_.addend_input]) +
                                                   pixel * registers_.addend_pitch;
      t.rows = upright ? at.cols : at.rows;
      t.cols = upright ? at.rows : at.cols;
      if (const float* sums = non_finite ? non_finite_.sums_of(t, at, inputs, placed.room) : nullptr; sums != nullptr) {
        t.from = sums;
        t.point_stride = out_stride_;
        transforms_->output_of_sums(t, 0);
      } else if (const int64_t channel = i < multiplied && !non_finite ? transforms_->output(t) : 0;
                 channel < t.channels) {
        non_finite_.sum_directly(at, channel, inputs, {products(scratch) + i * out_stride_, out_point()});
        transforms_->output_of_sums(t, channel);
      }
      if (epilogue_.empty()) continue;
      // Of pixels side by side, a row of a tile at once.
      const int64_t at_once = next == 1 ? t.cols : 1;
      for (int64_t r = 0; r < t.rows; ++r)
        for (int64_t c = 0; c < t.cols; c += at_once)
          epilogue_.apply(t.out + r * t.out_row + c * t.out_pixel, out_pitch_, at_once, g_.out_channels,
                          pixel + r * row_step + c * next, 0, inputs);
    }
  }

  WindowGeometry g_;
  WinogradTiles tiles_;
  int64_t count_;
  int64_t panels_;
  int64_t in_stride_, out_stride_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  const MicroTable* micro_;
  const WinogradTable* transforms_;
  NonFiniteTiles non_finite_;
  int64_t block_tiles_ = 1, whole_tiles_ = 1;
  bool shared_ = false;
  int width_ = 1;
};

}  // namespace

WinogradAxis::WinogradAxis(const ops::WindowAxis& axis, int64_t of_size, int64_t side)
    : before(axis.before), size(of_size) {
  if (axis.kernel > 1) {
    outputs = side;
    inputs = side + 2;
    step = axis.dilation;
  }
  tiles = ceil_div(size, outputs * step) * step;
}

int64_t WinogradAxis::filled(int64_t tile) const {
  return std::clamp<int64_t>(ceil_div(size - begin(tile), step), 0, outputs);
}

WinogradTiles::WinogradTiles(const WindowGeometry& g, int64_t of_side)
    : side(of_side), rows(g.rows, g.out_height, side), columns(g.columns, g.out_width, side), batch(g.batch) {}

WinogradTiles::Place WinogradTiles::place_of(int64_t tile) const {
  const int64_t row = tile / columns.tiles, column = tile % columns.tiles, of_image = row % rows.tiles;
  return {row / rows.tiles, rows.begin(of_image), columns.begin(column), rows.filled(of_image), columns.filled(column)};
}

WinogradSplit winograd_split(const WindowGeometry& g, int64_t side, const Machine& machine) {
  // Both sides of the products of one block of tiles, for all points, are to stay in the second-level cache; beside
  // weights that it can about hold, a block is no more than the rows that a product takes at once. Weights of a few
  // times its size are read once by all threads together rather than once by each.
  const int64_t cache_bytes = machine.cache_bytes[kSecondLevel];
  const int64_t block_bytes = cache_bytes / 4 * 3, kept_bytes = cache_bytes / 4 * 5, shared_bytes = 3 * cache_bytes;
  constexpr int64_t kSharedTiles = 64;
  const WinogradTiles tiles(g, side);
  WinogradSplit out;
  out.weight_bytes = tiles.store_weights() ? transformed_bytes(g, side) : direct_shape(g).packed_bytes();
  const int64_t tile_bytes =
      tiles.points() * (aligned_elems(g.channels) + aligned_elems(g.out_channels)) * int64_t{sizeof(float)};
  const bool kept = tiles.store_weights() && out.weight_bytes <= kept_bytes;
  const int64_t fitting = kept ? kMaxTileRows : std::max(kLeastTiles, block_bytes / std::max<int64_t>(tile_bytes, 1));
  const int64_t count = std::max<int64_t>(1, tiles.count());  // of a batch of none too
  out.block_tiles = ceil_div(count, ceil_div(count, fitting));
  out.shared = out.weight_bytes > shared_bytes;
  if (out.shared) out.block_tiles = std::min(count, std::max(out.block_tiles, kSharedTiles));
  const int64_t filling = kept || out.shared ? 0 : std::min(count, cache_bytes / std::max<int64_t>(tile_bytes, 1));
  out.whole_tiles = std::max(out.block_tiles, filling);
  return out;
}

Refusal refuse_winograd(const WindowGeometry& g, int64_t side) {
  const bool lines = side == kWinogradOutput;
  if (fits(g) && (lines || g.taps() == 9)) return std::nullopt;
  return text("winograd takes 3x3", lines ? ", 1x3 and 3x1" : "", " windows of stride 1 and one group; got ",
              g.rows.kernel, "x", g.columns.kernel, ", stride ", g.rows.stride, "x", g.columns.stride, ", groups ",
              g.groups, ".");
}

std::unique_ptr<Kernel> make_winograd_conv(const KernelCall& call, const WindowGeometry& g, int64_t side) {
  return std::make_unique<WinogradConv>(call, g, side);
}

}  // namespace hetnn::kernels
