// Tiles of bf16, and rows that are made f32.
#include "hetnn/kernels/gemm/brain_product.h"

#include <algorithm>

#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/gemm/tile_split.h"
#include "hetnn/kernels/isa.h"

namespace hetnn::kernels {
namespace {

// Of fewer rows, tiles wait for weights as long as other instructions multiply.
constexpr int64_t kLeastRows = 4;
constexpr int64_t kLine_bytes = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

PanelShape widened(PanelShape shape) {
  shape.a_bytes = shape.a_bytes / shape.elem_bytes * 4;
  shape.elem_bytes = 4;
  return shape;
}

int64_t whole_lines(int64_t bytes) { return ceil_div(bytes, kLine_bytes) * kLine_bytes; }

// Rows as f32, in room for a block of them.
class WidenedRows final : public RowSource {
 public:
  WidenedRows(const uint16_t* x, int64_t k, float* room, const HalvesConversion& convert)
      : x_(x), k_(k), room_(room), convert_(convert) {}

  void fetch(int64_t first, int64_t count) const override {
    first_ = first;
    convert_.widen(x_ + first * k_, room_, count * k_);
  }
  void fill(int64_t first, int64_t count, const std::byte** table, int64_t /*stride*/) const override {
    for (int64_t r = 0; r < count; ++r)
      table[r] = reinterpret_cast<const std::byte*>(room_ + (first + r - first_) * k_);
  }
  int64_t fill_even(int64_t first, int64_t /*count*/, const std::byte** table, int64_t /*stride*/) const override {
    fill(first, 1, table, 1);
    return k_ * 4;
  }

 private:
  const uint16_t* x_;
  int64_t k_;
  float* room_;
  const HalvesConversion& convert_;
  mutable int64_t first_ = 0;
};

}  // namespace

BrainProduct::BrainProduct(const PanelShape& shape, const KernelCall& call)
    : shape_(shape),
      product_(widened(shape), call),
      convert_(halves_conversion(DType::bf16)),
      by_tiles_(uses_amx() && shape.rows >= kLeastRows && shape.k % shape.step() == 0) {}

int64_t BrainProduct::packed_bias_bytes(int64_t cols) { return ceil_div(cols, kTileCols) * kTileCols * 4; }

int64_t BrainProduct::result_bytes() const { return whole_lines(shape_.rows * shape_.cols * 4); }

int64_t BrainProduct::widened_bytes() const {
  return whole_lines(product_.scratch_bytes_per_thread()) + whole_lines(product_.block_rows() * shape_.k * 4);
}

int64_t BrainProduct::scratch_bytes(int threads) const {
  return by_tiles_ ? 0 : result_bytes() + threads * widened_bytes();
}

void BrainProduct::run(const RunContext& context, const BrainRun& run) const {
  by_tiles_ ? run_tiles(context, run) : run_widened(context, run);
}

void BrainProduct::run_widened(const RunContext& context, const BrainRun& run) const {
  auto* const result = reinterpret_cast<float*>(context.scratch);
  std::byte* const own = context.scratch + result_bytes() + context.thread * widened_bytes();
  std::byte* const room = own + whole_lines(product_.scratch_bytes_per_thread());
  const WidenedRows rows(run.x, shape_.k, reinterpret_cast<float*>(room), convert_);
  PanelRun wide;
  wide.source = &rows;
  wide.panels = reinterpret_cast<const float*>(run.panels);
  wide.bias = run.bias;
  wide.out = result;
  wide.ld_out = shape_.cols;
  product_.run(wide, context.thread, context.threads, own);
  context.barrier.arrive_and_wait();
  const Share share = share_of(shape_.rows * shape_.cols, context.thread, context.threads);
  convert_.narrow(result + share.begin, run.out + share.begin, share.end - share.begin);
}

void BrainProduct::run_tiles(const RunContext& context, const BrainRun& run) const {
  const DenseRows source(reinterpret_cast<const std::byte*>(run.x), shape_.k * shape_.elem_bytes);
  const EvenRows rows = source.even_rows(shape_.rows).in_long_lines();
  const TileSplit split(shape_, rows, context.thread, context.threads);
  const Share pieces = split.pieces(), strips = split.strips();
  if (pieces.begin == pieces.end || strips.begin == strips.end) return;

  alignas(64) float sums[kTilePieces * kTileRows * kTileCols];
  alignas(64) const float zeros[kTileCols] = {};
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
      block.base = run.bias == nullptr ? zeros : run.bias + strip.col;
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
  for (int64_t row = rows.begin; row < rows.end; ++row, sums += kTileCols)
    convert_.narrow(sums, run.out + row * shape_.cols + col, cols);
}

}  // namespace hetnn::kernels
