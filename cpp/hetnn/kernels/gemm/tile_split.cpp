// Cuts products for tiles.
#include "hetnn/kernels/gemm/tile_split.h"

#include <algorithm>

#include "hetnn/kernels/query/machine.h"

namespace hetnn::kernels {
namespace {

// Of the second level of the cache, rows of a block beside the strips that pass by, and strips that stay while blocks
// pass by.
int64_t block_bytes() { return this_machine().cache_bytes[kSecondLevel] / 4 * 3; }
int64_t kept_strip_bytes() { return this_machine().cache_bytes[kSecondLevel] / 2; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t strips_of_group(const PanelShape& shape) { return ceil_div(shape.panels_per_group(), kTilePanels); }

}  // namespace

TileSplit::TileSplit(const PanelShape& shape, const EvenRows& rows, int thread, int threads)
    : shape_(shape),
      rows_(rows),
      line_pieces_(ceil_div(rows.line_rows, kTileRows)),
      piece_rows_(ceil_div(rows.line_rows, line_pieces_)) {
  const int64_t pieces = shape.rows / rows.line_rows * line_pieces_, strips = shape.groups * strips_of_group(shape);
  const int64_t tiles = shape.taps * ceil_div(shape.k * shape.elem_bytes, kTileBytes);
  const ThreadGrid grid = thread_grid(threads, [&](ThreadGrid by) {
    // Cycles of two panels and a tile of rows; and bytes at a rate between the second and the third cache level.
    const auto compute =
        static_cast<double>(ceil_div(pieces, by.row_parts) * ceil_div(strips, by.col_parts) * tiles * 32);
    const double traffic = static_cast<double>(shape.packed_bytes()) / by.col_parts / 8 +
                           static_cast<double>(shape.a_bytes) / by.row_parts / 16;
    return compute + traffic + waiting_cycles(by, shape.moved_bytes());
  });
  pieces_ = share_of(pieces, thread % grid.row_parts, grid.row_parts);
  strips_ = share_of(strips, thread / grid.row_parts, grid.col_parts);
  const int64_t strip_bytes = (strips_.end - strips_.begin) * kTilePanels * shape.panel_bytes();
  block_pieces_ =
      strip_bytes <= kept_strip_bytes()
          ? kTilePieces
          : std::clamp(block_bytes() / (piece_rows_ * shape.k * shape.elem_bytes) / kTilePieces * kTilePieces,
                       int64_t{kTilePieces}, kMostPieces);
}

TilePiece TileSplit::piece(int64_t number) const {
  const int64_t line = number / line_pieces_, begin = number % line_pieces_ * piece_rows_;
  const int64_t first = std::min(begin, rows_.line_rows - piece_rows_);
  const int64_t image = line / rows_.image_lines;
  return {.at = rows_.base + image * rows_.image_bytes + (line - image * rows_.image_lines) * rows_.line_bytes +
                first * rows_.step_bytes,
          .first = begin - first,
          .row = line * rows_.line_rows + begin,
          .rows = first + piece_rows_ - begin};
}

TileSplit::Strip TileSplit::strip(int64_t number) const {
  const int64_t of_group = strips_of_group(shape_), group = shape_.groups == 1 ? 0 : number / of_group;
  const int64_t panel = (number - group * of_group) * kTilePanels;
  const int64_t panels = std::min<int64_t>(kTilePanels, shape_.panels_per_group() - panel);
  return {.panel = group * shape_.panels_per_group() + panel,
          .panels = static_cast<int>(panels),
          .col = group * shape_.cols + panel * kPanel,
          .cols = std::min(shape_.cols - panel * kPanel, panels * kPanel),
          .group = group};
}

Share TileSplit::columns() const {
  if (strips_.begin == strips_.end) return {0, 0};
  const Strip last = strip(strips_.end - 1);
  return {strip(strips_.begin).col, last.col + last.cols};
}

}  // namespace hetnn::kernels
