// How a product of evenly spaced rows with packed panels is cut for tiles: lines into pieces of equal size, pieces and
// strips of two panels into shares of threads, never along k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/base/parallel.h"
#include "hetnn/kernels/gemm/amx_micro.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// Some rows of one line. Pieces of a product have one size, so that a line's last may begin with rows of the one
/// before it.
struct TilePiece {
  const std::byte* at;  // its first row
  int64_t first;        // of its rows, that no other piece has,
  int64_t row, rows;    // the row of the product that it is, and how many there
                        // are from it on
};

/// A thread's share of one run.
class TileSplit {
 public:
  static constexpr int64_t kMostPieces = 64;  // of a block

  TileSplit(const PanelShape& shape, const EvenRows& rows, int thread, int threads);

  /// Of a piece.
  int64_t piece_rows() const { return piece_rows_; }
  Share pieces() const { return pieces_; }
  Share strips() const { return strips_; }
  /// Of all strips of the share, one after another.
  Share columns() const;
  /// How many pieces are multiplied by one strip before the next: their rows stay in the second-level cache, or the
  /// strips do.
  int64_t block_pieces() const { return block_pieces_; }
  /// Whether it is the strips.
  bool strips_pass() const { return block_pieces_ > kTilePieces; }
  TilePiece piece(int64_t number) const;

  struct Strip {
    int64_t panel;  // the first, counted over all groups
    int panels;
    int64_t col, cols;  // of the result
    int64_t group;
  };
  Strip strip(int64_t number) const;

 private:
  const PanelShape& shape_;
  const EvenRows& rows_;
  int64_t line_pieces_, piece_rows_;
  Share pieces_{}, strips_{};
  int64_t block_pieces_ = kMostPieces;
};

}  // namespace hetnn::kernels
