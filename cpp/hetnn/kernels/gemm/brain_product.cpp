// Tiles of bf16, and the microkernel of pairs.
#include "hetnn/kernels/gemm/brain_product.h"

#include <algorithm>

#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/gemm/tile_split.h"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

// Of fewer rows, tiles wait for weights as long as other instructions multiply.
constexpr int64_t kLeastRows = 4;
constexpr int64_t kLine_bytes = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int panels_of_tile(const BrainMicroTable& micro, const PanelShape& shape) {
  return micro.max_rows[kMostBrainPanels] > 0 && shape.panels_per_group() > 1 ? kMostBrainPanels : 1;
}

}  // namespace

PanelShape BrainProduct::packed_shape(PanelShape shape) {
  shape.weights = DType::bf16;
  return shape;
}

BrainProduct::BrainProduct(const PanelShape& shape, const KernelCall& call)
    : shape_(packed_shape(shape)),
      micro_(&brain_micro_table()),
      split_(shape_, micro_->max_rows, panels_of_tile(*micro_, shape_)),
      convert_(halves_conversion(DType::bf16)),
      by_tiles_(uses_amx() && shape.taps == 1 && shape.rows >= kLeastRows && shape.k % shape_.step() == 0) {
  for (const Step& step : call.steps) {
    if (is_sum(step)) {
      addend_input_ = step.input;
      ld_addend_ = row_view(call.inputs[static_cast<size_t>(step.input)]).pitch;
      continue;
    }
    const float low = step.values.empty() ? 0 : static_cast<float>(step.values[0]);
    const float high = step.values.empty() ? high_ : static_cast<float>(step.values[1]);
    for (float* bound : {&low_, &high_}) *bound = std::min(std::max(*bound, low), high);
  }
}

Refusal BrainProduct::refuse_steps(std::string_view kernel, const KernelCall& call) {
  Terms terms(kernel, call);
  for (const Step& step : call.steps) {
    if (step.function == kSumOfBf16) {
      if (!terms.hold(&step == call.steps.data(), "takes one sum, before bounds").holds_step(step)) break;
      terms.hold(step.values == std::vector<double>{1, 1}, "takes a sum of two values as they are");
      if (!terms.met()) break;
      const TensorView &other = call.inputs[static_cast<size_t>(step.input)], &y = call.outputs[0];
      terms.hold(std::ranges::equal(other.shape(), y.shape()) && other.layout == y.layout,
                 "takes an operand of a sum that lies as the result does; got ", view_text(other), " for ",
                 view_text(y));
      continue;
    }
    const size_t bounds = step.function == "clamp" ? 2 : 0;
    terms.hold(step.function == "relu" || bounds > 0, "takes the steps relu, clamp and a sum; got ", step.function)
        .hold(step.values.size() == bounds, "takes ", bounds, " bounds with ", step.function);
  }
  return terms;
}

int64_t BrainProduct::packed_bias_bytes(int64_t cols) { return ceil_div(cols, kTileCols) * kTileCols * 4; }

std::vector<std::byte> BrainProduct::pack_bias(int64_t cols, std::span<const std::byte> bias) {
  std::vector<std::byte> packed(static_cast<size_t>(packed_bias_bytes(cols)));
  const auto* from = reinterpret_cast<const uint16_t*>(bias.data());
  std::transform(from, from + cols, reinterpret_cast<float*>(packed.data()), bf16_to_f32);
  return packed;
}

BrainRun BrainProduct::run_on(const std::byte* const* inputs, const std::byte* panels, const std::byte* bias,
                              std::byte* out, int64_t ld_out) const {
  return {.source = nullptr,
          .panels = panels,
          .bias = reinterpret_cast<const float*>(bias),
          .addend = addend_input_ < 0 ? nullptr : reinterpret_cast<const uint16_t*>(inputs[addend_input_]),
          .out = reinterpret_cast<uint16_t*>(out),
          .ld_out = ld_out};
}

void BrainProduct::run(const BrainRun& run, int thread, int threads, std::byte* scratch) const {
  if (by_tiles_) {
    if (const EvenRows rows = run.source->even_rows(shape_.rows); rows.base != nullptr)
      return run_tiles(run, rows.in_long_lines(), thread, threads);
  }
  BrainTile tile;
  tile.taps = shape_.taps;
  tile.k = shape_.k;
  tile.panel_stride = shape_.panel_bytes();
  tile.ld_out = run.ld_out;
  if (run.addend == nullptr) {
    tile.low = low_;
    tile.high = high_;
  }
  split_.for_share(*run.source, thread, threads, scratch, [&](const TilePlace& place) {
    tile.rows = place.rows;
    tile.rows_stride = place.rows_stride;
    tile.row_offset_bytes = place.row_offset_bytes;
    tile.panel = run.panels + place.panel * tile.panel_stride;
    if (run.bias != nullptr) tile.bias = run.bias + place.col;
    tile.out = run.out + place.row * run.ld_out + place.col;
    tile.cols = place.cols;
    tile.prefetch = run.panels + place.fetch_begin_bytes;
    tile.prefetch_step_bytes = place.fetch_step_bytes;
    // Comes near while the tile multiplies.
    for (int64_t r = 0; run.addend != nullptr && r < place.count; ++r)
      __builtin_prefetch(run.addend + (place.row + r) * ld_addend_ + place.col);
    micro_->run[place.panels][place.count](tile);
    add(run, {place.row, place.row + place.count}, place.col, place.cols);
  });
}

void BrainProduct::run_tiles(const BrainRun& run, const EvenRows& rows, int thread, int threads) const {
  const TileSplit split(shape_, rows, thread, threads);
  const Share pieces = split.pieces(), strips = split.strips();
  if (pieces.begin == pieces.end || strips.begin == strips.end) return;

  alignas(64) float sums[kTilePieces * kTileRows * kTileCols];
  TilePiece table[TileSplit::kMostPieces];
  const int64_t panel_bytes = shape_.panel_bytes(), row_bytes = shape_.k * shape_.elem_bytes;
  const int64_t tiles = ceil_div(row_bytes, kTileBytes);
  TileBlock block{};
  block.step_bytes = rows.step_bytes;
  block.taps = rows.taps;
  block.tap_count = 1;
  block.wholes = row_bytes / kTileBytes;
  block.rest = row_bytes % kTileBytes;
  block.panel_stride = panel_bytes;

  // Sums of the block before, some rows of which become results while tiles multiply.
  struct Waiting {
    const BrainProduct& product;
    const BrainRun& run;
    float* sums;
    int64_t at_once;
    TileSplit::Strip strip{};
    struct Rows {
      int64_t from, row, count;  // the first, of the sums and of the result, and how many are left
    } rows[kTilePieces]{};
    int pieces = 0;

    void take(int64_t most) {
      while (pieces > 0 && most > 0) {
        Rows& next = rows[0];
        const int64_t count = std::min(most, next.count);
        product.finish(run, sums + next.from * kTileCols, {next.row, next.row + count}, strip.col, strip.cols);
        most -= count;
        next = {next.from + count, next.row + count, next.count - count};
        if (next.count > 0) continue;
        rows[0] = rows[1];
        --pieces;
      }
    }
  } waiting{*this, run, sums, std::max<int64_t>(4, ceil_div(kTilePieces * kTileRows, kMeanwhile * tiles))};
  block.what = &waiting;
  block.meanwhile = [](void* what) {
    auto& them = *static_cast<Waiting*>(what);
    if (them.pieces > 0) them.take(them.at_once);
  };

  const TileState state(split.piece_rows(), block.rest);
  const int64_t block_pieces = split.block_pieces();
  for (int64_t begin = pieces.begin; begin < pieces.end; begin += block_pieces) {
    const int64_t count = std::min(block_pieces, pieces.end - begin), pairs = ceil_div(count, kTilePieces);
    for (int64_t i = 0; i < count; ++i) table[i] = split.piece(begin + i);
    for (int64_t number = strips.begin; number < strips.end; ++number) {
      const TileSplit::Strip strip = split.strip(number);
      // The next panels are fetched while this strip's blocks are multiplied, by each its part of them.
      const bool fetches = number + 1 < strips.end && (begin == pieces.begin || split.strips_pass());
      block.prefetch_lines = fetches ? ceil_div(kTilePanels * panel_bytes / kLine_bytes, pairs * tiles) : 0;
      block.panel = run.panels + strip.panel * panel_bytes;
      block.base = run.bias == nullptr ? kNoBias : run.bias + strip.col;
      block.prefetch = block.panel + kTilePanels * panel_bytes;
      for (int64_t i = 0; i < count; i += kTilePieces) {
        const int both = static_cast<int>(std::min<int64_t>(kTilePieces, count - i));
        for (int p = 0; p < both; ++p) block.pieces[p] = table[i + p].at;
        // Of panels of 16 bits there is an even number.
        const TileFunctions& by_tiles = brain_tiles(both, kTilePanels);
        (block.rest > 0 ? by_tiles.multiply_rest : by_tiles.multiply)(block);
        block.prefetch += block.prefetch_lines * tiles * kLine_bytes;
        waiting.take(kTilePieces * kTileRows);
        by_tiles.store(sums, split.piece_rows());
        waiting.strip = strip;
        waiting.pieces = both;
        for (int p = 0; p < both; ++p) {
          const TilePiece& piece = table[i + p];
          waiting.rows[p] = {p * split.piece_rows() + piece.first, piece.row, piece.rows};
        }
      }
    }
  }
  waiting.take(kTilePieces * kTileRows);
}

void BrainProduct::finish(const BrainRun& run, const float* sums, Share rows, int64_t col, int64_t cols) const {
  const float low = run.addend == nullptr ? low_ : -std::numeric_limits<float>::infinity();
  const float high = run.addend == nullptr ? high_ : std::numeric_limits<float>::infinity();
  float line[kTileCols];
  for (int64_t row = rows.begin; row < rows.end; ++row, sums += kTileCols) {
    // Neither takes the place of a NaN.
    for (int64_t c = 0; c < kTileCols; ++c) line[c] = sums[c] < low ? low : sums[c] > high ? high : sums[c];
    convert_.narrow(line, run.out + row * run.ld_out + col, cols);
  }
  add(run, rows, col, cols);
}

void BrainProduct::add(const BrainRun& run, Share rows, int64_t col, int64_t cols) const {
  if (run.addend == nullptr) return;
  micro_->add({.out = run.out + rows.begin * run.ld_out + col,
               .ld_out = run.ld_out,
               .addend = run.addend + rows.begin * ld_addend_ + col,
               .ld_addend = ld_addend_,
               .rows = rows.end - rows.begin,
               .cols = cols,
               .low = low_,
               .high = high_});
}

}  // namespace hetnn::kernels
