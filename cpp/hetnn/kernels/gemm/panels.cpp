// Splits, tiles and runs products of rows with packed panels.
#include "hetnn/kernels/gemm/panels.h"

#include <algorithm>

#include "hetnn/base/parallel.h"

namespace hetnn::kernels {
namespace {

// A block of rows keeps its pointer table in the first-level cache's neighbourhood and its elements in the second
// level.
constexpr int64_t kTableEntries = 8192;
constexpr int64_t kRowBlock_bytes = 768 << 10;
constexpr int64_t kRowBlockMax = 1024;

// Elements that one thread packs before it asks for more.
constexpr int64_t kPackedAtOnce = 1 << 17;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Of most products there is one part each, and divisions take longer than the smallest products.
int64_t parts_of(int64_t total, int64_t most) { return total <= most ? (total > 0 ? 1 : 0) : ceil_div(total, most); }
int64_t begin_of(int64_t total, int64_t part, int64_t parts) {
  return parts == 1 ? total * part : total * part / parts;
}

}  // namespace

PanelProduct::PanelProduct(const PanelShape& shape, EpiloguePlan epilogue)
    : shape_(shape),
      epilogue_(std::move(epilogue)),
      registers_(epilogue_.take_register_part()),
      micro_(&micro_table()) {
  const int64_t panels = shape_.panels_per_group();
  tile_panels_ = micro_->panels_for(shape_.rows, panels);
  tile_rows_ = micro_->max_rows[tile_panels_];
  const int rest = static_cast<int>(panels % tile_panels_);
  last_panels_.push_back(0);
  for (int panel = 0, wide = 0; panel < rest; panel += wide) {
    wide = rest - panel;
    while (micro_->max_rows[wide] == 0) --wide;
    last_panels_.push_back(panel + wide);
  }
  strips_per_group_ = panels / tile_panels_ + static_cast<int64_t>(last_panels_.size()) - 1;
  const int64_t by_table = kTableEntries / std::max<int64_t>(1, shape_.taps);
  const int64_t by_bytes = kRowBlock_bytes / std::max<int64_t>(4, shape_.k * 4);
  const int64_t block = std::min({by_table, by_bytes, kRowBlockMax});
  row_block_ = std::max<int64_t>(1, block / tile_rows_) * tile_rows_;
  const int64_t entries = block_rows() * std::max<int64_t>(1, shape_.taps);
  scratch_bytes_per_thread_ = ceil_div(entries * static_cast<int64_t>(sizeof(const float*)), 64) * 64;
}

PanelProduct::Strip PanelProduct::strip(int64_t number) const {
  const int64_t group = shape_.groups == 1 ? 0 : number / strips_per_group_;
  const int64_t in_group = number - group * strips_per_group_;
  const int64_t wide = strips_per_group_ - static_cast<int64_t>(last_panels_.size()) + 1;
  int64_t panel = in_group * tile_panels_, count = tile_panels_;
  if (in_group >= wide) {
    const int* const last = last_panels_.data() + (in_group - wide);
    panel = wide * tile_panels_ + last[0];
    count = last[1] - last[0];
  }
  const int64_t col = panel * kPanel;
  return {.panel = group * shape_.panels_per_group() + panel,
          .panels = count,
          .col = group * shape_.cols + col,
          .cols = std::min(shape_.cols - col, count * kPanel),
          .row_offset = group * shape_.k};
}

int64_t PanelProduct::block_rows() const { return std::min(row_block_, std::max<int64_t>(1, shape_.rows)); }

PanelProduct::Grid PanelProduct::grid_for(int threads) const {
  const double weight_bytes = 4.0 * static_cast<double>(shape_.packed_elems());
  Grid best{threads, 1};
  double best_cost = 0;
  for (int col_parts = 1; col_parts <= threads; ++col_parts) {
    if (threads % col_parts != 0) continue;
    const int row_parts = threads / col_parts;
    const double rows = static_cast<double>(ceil_div(shape_.rows, row_parts));
    const double tiles_cols = static_cast<double>(ceil_div(strips(), col_parts) * tile_panels_ * kPanel);
    // Cycles at 32 multiply-adds each, and bytes at a rate between the second and the third cache level.
    const double compute = rows * tiles_cols * static_cast<double>(shape_.k * shape_.taps) / 32;
    const double traffic = (weight_bytes / col_parts + static_cast<double>(shape_.a_bytes) / row_parts) / 16;
    const double cost = compute + traffic;
    if (col_parts == 1 || cost < best_cost) {
      best = {row_parts, col_parts};
      best_cost = cost;
    }
  }
  return best;
}

PanelRun PanelProduct::run_on(const std::byte* const* inputs, const std::byte* panels, const std::byte* bias,
                              std::byte* out, int64_t ld_out) const {
  PanelRun run;
  run.panels = reinterpret_cast<const float*>(panels);
  run.bias = reinterpret_cast<const float*>(bias);
  if (registers_.addend_input >= 0) run.addend = reinterpret_cast<const float*>(inputs[registers_.addend_input]);
  run.ld_addend = registers_.addend_pitch;
  run.out = reinterpret_cast<float*>(out);
  run.ld_out = ld_out;
  run.inputs = inputs;
  return run;
}

void PanelProduct::run(const PanelRun& run, int thread, int threads, std::byte* scratch) const {
  if (threads == 1) return run_share(run, {0, shape_.rows}, {0, strips()}, scratch);
  const Grid grid = grid_for(threads);
  run_share(run, share_of(shape_.rows, thread % grid.row_parts, grid.row_parts),
            share_of(strips(), thread / grid.row_parts, grid.col_parts), scratch);
}

void PanelProduct::run_group(const PanelRun& run, Share rows, int thread, int threads, std::byte* scratch) const {
  run_share(run, rows, share_of(strips(), thread, threads), scratch);
}

void PanelProduct::run_share(const PanelRun& run, Share rows, Share strips, std::byte* scratch) const {
  if (strips.begin == strips.end) return;
  const auto** table = reinterpret_cast<const float**>(scratch);
  const int64_t panel_elems = shape_.taps * shape_.k * kPanel;
  alignas(64) float sums[kMaxTileElems];
  MicroTile tile(sums);
  tile.taps = shape_.taps;
  tile.k = shape_.k;
  tile.panel_stride = panel_elems;
  tile.ld_addend = run.ld_addend;
  tile.addend_scale = registers_.addend_scale;
  tile.ld_out = run.ld_out;
  tile.lo = registers_.lo;
  tile.hi = registers_.hi;
  // Elsewhere columns of equal weights would not be equal.
  const bool lone = shape_.rows == 1 && this->strips() == 1;
  // Blocks of equal size, so that the last one is not a sliver.
  const int64_t blocks = parts_of(rows.end - rows.begin, row_block_);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t block_begin = rows.begin + begin_of(rows.end - rows.begin, block, blocks);
    const int64_t block_end = rows.begin + begin_of(rows.end - rows.begin, block + 1, blocks);
    const int64_t block_rows = block_end - block_begin;
    const int64_t tiles = parts_of(block_rows, tile_rows_);
    run.source->fill(block_begin, block_rows, table, block_rows);
    tile.rows_stride = block_rows;
    Strip following = strip(strips.begin);
    for (int64_t number = strips.begin; number < strips.end; ++number) {
      const Strip now = following;
      const bool is_last = number + 1 == strips.end;
      if (!is_last) following = strip(number + 1);
      tile.cols = now.cols;
      tile.panel = run.panels + now.panel * panel_elems;
      tile.row_offset = now.row_offset;
      tile.bias = run.bias == nullptr ? nullptr : run.bias + now.col;
      const float* next = is_last ? nullptr : run.panels + following.panel * panel_elems;
      const MicroFunction* const run_tile = micro_->run[now.panels];
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t begin = begin_of(block_rows, i, tiles);
        const int64_t end = begin_of(block_rows, i + 1, tiles);
        const int64_t row = block_begin + begin;
        tile.rows = table + begin;
        tile.out = run.out + row * run.ld_out + now.col;
        tile.addend = run.addend == nullptr ? nullptr : run.addend + row * run.ld_addend + now.col;
        // The next panels are fetched while the first tiles run, one panel a tile.
        const bool fetch = next != nullptr && i < now.panels;
        tile.prefetch = fetch ? next + i * panel_elems : tile.panel;
        tile.prefetch_step = fetch ? kPanel : 0;
        (lone ? micro_->run_lone[now.panels] : run_tile[end - begin])(tile);
        if (!epilogue_.empty()) {
          epilogue_.apply(tile.out, run.ld_out, end - begin, tile.cols, run.first_row + row, now.col, run.inputs);
        }
      }
    }
  }
}

void pack_panels(const PanelShape& shape, const float* weight, const PackStrides& strides, float* packed) {
  const int64_t panels = shape.panels_per_group(), panel_elems = shape.taps * shape.k * kPanel;
  const auto pack = [&](int64_t number) {
    const int64_t group = number / panels, panel = number % panels;
    const int64_t cols = std::min(kPanel, shape.cols - panel * kPanel);
    float* to = packed + number * panel_elems;
    for (int64_t tap = 0; tap < shape.taps; ++tap) {
      const float* from = weight + group * strides.group + panel * kPanel * strides.col + tap * strides.tap;
      for (int64_t k = 0; k < shape.k; ++k, to += kPanel) {
        for (int64_t c = 0; c < cols; ++c) to[c] = from[c * strides.col + k * strides.k];
        std::fill(to + cols, to + kPanel, 0.0f);
      }
    }
  };
  // Few numbers are packed before another thread has woken.
  const int64_t at_once = std::max<int64_t>(1, kPackedAtOnce / std::max<int64_t>(1, panel_elems));
  const int64_t all = shape.groups * panels;
  parallel_each(ceil_div(all, at_once), [&](int64_t k) {
    for (int64_t number = k * at_once; number < std::min(all, (k + 1) * at_once); ++number) pack(number);
  });
}

}  // namespace hetnn::kernels
