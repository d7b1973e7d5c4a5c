// Runs products of bytes by tiles: multiplies a block while the sums of the one before it become integers.
#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/gemm/tile_split.h"
#include "hetnn/kernels/isa.h"

namespace hetnn::kernels {
namespace {

// Of fewer rows, tiles wait for weights as long as other instructions multiply.
constexpr int64_t kLeastRows = 4;
constexpr int64_t kLine_bytes = 64;
constexpr int64_t kCopiedPieces = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t rounded_up(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

// Rows that may not be read up to a whole step are copied first; then they are so long. They have one tap.
bool copies_rows(const PanelShape& shape) { return shape.k % shape.step() != 0 && !shape.whole_steps; }
int64_t copied_row_bytes(const PanelShape& shape) { return rounded_up(shape.groups * shape.k, shape.step()); }

}  // namespace

bool IntegerProduct::reads_even_rows(const PanelShape& shape) { return uses_amx() && shape.rows >= kLeastRows; }

int64_t IntegerProduct::tile_scratch_bytes() const {
  if (!copies_rows(shape_)) return 0;
  const int64_t pieces = std::min(kCopiedPieces, ceil_div(shape_.rows, kTileRows));
  return rounded_up(pieces * kTileRows * copied_row_bytes(shape_) + kLine_bytes, kLine_bytes);
}

void IntegerProduct::run_tiles(const IntegerRun& run, int thread, int threads, std::byte* scratch) const {
  EvenRows rows = run.source->even_rows(shape_.rows).in_long_lines();
  HETNN_ASSERT(rows.base != nullptr, "rows that are not evenly spaced");
  const TileSplit split(shape_, rows, thread, threads);
  const Share pieces = split.pieces(), strips = split.strips(), columns = split.columns();
  if (pieces.begin == pieces.end || strips.begin == strips.end) return;

  alignas(64) int32_t sums[kTilePieces * kTileRows * kTileCols];
  TilePiece table[TileSplit::kMostPieces];
  const std::byte* starts[TileSplit::kMostPieces];  // of their rows, or of copies
  int32_t terms[TileSplit::kMostPieces * kTileRows];
  const bool copies = copies_rows(shape_);
  const int64_t panel_bytes = shape_.panel_bytes(), row_bytes = shape_.steps() * shape_.step();
  const int64_t tiles = shape_.taps * ceil_div(row_bytes, kTileBytes);
  // So that all are taken meanwhile, in pairs, and not so few that taking them is what takes the time.
  const int64_t at_once =
      std::max<int64_t>(4, rounded_up(ceil_div(kTilePieces * split.piece_rows(), kMeanwhile * tiles), 2));
  TileBlock block{};
  block.step_bytes = copies ? copied_row_bytes(shape_) : rows.step_bytes;
  block.taps = rows.taps;
  block.tap_count = shape_.taps;
  block.wholes = row_bytes / kTileBytes;
  block.rest = row_bytes % kTileBytes;
  block.panel_stride = panel_bytes;
  const Columns of = columns_of_weight(run.packed);
  IntegerFinish finish = finish_of(run);
  finish.ld_sums = kTileCols;
  finish.below_one = below_one_;
  IntegerFinish begins{};
  begins.turned = ends_.x_zero;
  alignas(64) int32_t base[kTileCols];
  block.base = base;

  // Sums of the block before, some rows of which become integers at a time.
  struct Waiting {
    const IntegerProduct& product;
    const IntegerRun& run;
    IntegerFinish& finish;
    const int32_t* sums;
    const Columns of;
    const Share columns;
    TileSplit::Strip strip{};
    struct Rows {
      int64_t from, row;    // the first, of the sums and of the result
      int64_t done, count;  // so many became integers, and so many have not
    } rows[kTilePieces]{};
    const int32_t* terms = nullptr;  // of the rows of sums, or null
    int pieces = 0;
    int64_t at_once = 0;

    void take(int64_t most) {
      while (pieces > 0 && most > 0) {
        Rows& next = rows[0];
        const int64_t count = std::min(most, next.count);
        finish.sums = sums + (next.from + next.done) * kTileCols;
        finish.row_terms = terms == nullptr ? nullptr : terms + next.from + next.done;
        if (!product.reals_) finish.out = run.out + (next.row + next.done) * run.ld_out + strip.col;
        finish.rows = count;
        const int64_t column = strip.panel * kPanel;
        product.finish_block(finish, run, {next.row + next.done, strip.col, column, of.shifts + column});
        most -= count;
        next.done += count;
        next.count -= count;
        if (next.count > 0) continue;
        // Of these rows all columns of the share are there.
        if (run.operand != nullptr && strip.col + strip.cols == columns.end)
          product.ends_.sum.add(run.operand, run.out, run.ld_out, {next.row, next.row + next.done}, columns);
        rows[0] = rows[1];
        --pieces;
      }
    }
    void take_all() { take(kTilePieces * kTileRows); }
  } waiting{*this, run, finish, sums, of, columns};
  block.what = &waiting;
  block.meanwhile = [](void* what) {
    auto& them = *static_cast<Waiting*>(what);
    if (them.pieces > 0) them.take(them.at_once);
  };

  const TileState state(split.piece_rows(), block.rest);
  // Copies are read when they have left the processor's queue of stores.
  const int64_t block_pieces = copies ? kCopiedPieces : split.block_pieces();
  for (int64_t begin = pieces.begin; begin < pieces.end; begin += block_pieces) {
    const int64_t count = std::min(block_pieces, pieces.end - begin), pairs = ceil_div(count, kTilePieces);
    for (int64_t i = 0; i < count; ++i) {
      table[i] = split.piece(begin + i);
      starts[i] = table[i].at;
      if (!copies) continue;
      std::byte* const to = scratch + i * kTileRows * block.step_bytes;
      for (int64_t r = 0; r < split.piece_rows(); ++r)
        std::memcpy(to + r * block.step_bytes, table[i].at + r * rows.step_bytes,
                    static_cast<size_t>(shape_.groups * shape_.k));
      starts[i] = to;
    }
    int64_t group = -1;  // whose terms there are
    for (int64_t number = strips.begin; number < strips.end; ++number) {
      const TileSplit::Strip strip = split.strip(number);
      const int64_t offset = strip.group * shape_.k;
      if (weight_zero_ != 0 && group != strip.group) {
        waiting.take_all();
        group = strip.group;
        for (int64_t i = 0; i < count; ++i)
          for (int64_t r = 0; r < split.piece_rows(); ++r)
            terms[i * split.piece_rows() + r] = row_term(table[i].at + r * rows.step_bytes + offset, rows.taps);
      }
      // The next panels are fetched while this strip's blocks are multiplied, by each its part of them.
      const bool fetches = number + 1 < strips.end && (begin == pieces.begin || split.strips_pass());
      block.prefetch_lines = fetches ? ceil_div(kTilePanels * panel_bytes / kLine_bytes, pairs * tiles) : 0;
      begins.bias = run.bias == nullptr || reals_ ? nullptr : run.bias + strip.panel * kPanel;
      begins.column_sums = of.sums + strip.panel * kPanel;
      micro_->begin(begins, strip.panels * kPanel, base);
      block.panel = run.packed + strip.panel * panel_bytes;
      block.prefetch = block.panel + kTilePanels * panel_bytes;
      for (int64_t i = 0; i < count; i += kTilePieces) {
        const int both = static_cast<int>(std::min<int64_t>(kTilePieces, count - i));
        for (int p = 0; p < both; ++p) block.pieces[p] = starts[i + p] + offset;
        const TileFunctions& by_tiles = integer_tiles(both, strip.panels);
        (block.rest > 0 ? by_tiles.multiply_rest : by_tiles.multiply)(block);
        block.prefetch += block.prefetch_lines * tiles * kLine_bytes;
        waiting.take_all();
        by_tiles.store(sums, split.piece_rows());
        finish.factors = of.factors + strip.panel * kPanel;
        finish.cols = strip.cols;
        waiting.strip = strip;
        waiting.terms = weight_zero_ == 0 ? nullptr : terms + i * split.piece_rows();
        waiting.pieces = 0;
        for (int p = 0; p < both; ++p) {
          const TilePiece& piece = table[i + p];
          const Waiting::Rows next = {p * split.piece_rows() + piece.first, piece.row, 0, piece.rows};
          Waiting::Rows& last = waiting.rows[p > 0 ? p - 1 : 0];
          if (p > 0 && last.from + last.count == next.from && last.row + last.count == next.row) {
            last.count += next.count;
          } else {
            waiting.rows[waiting.pieces++] = next;
          }
        }
        waiting.at_once = at_once;
      }
    }
    if (weight_zero_ != 0) waiting.take_all();
  }
  waiting.take_all();
}

}  // namespace hetnn::kernels
