// How a product of rows with packed panels is cut: into shares of threads, blocks of rows, strips of panels and tiles,
// whatever the elements are.
//
// Work is split over threads by rows, by columns or both, never along k, so that results do not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/thread_grid.h"

namespace hetnn::kernels {

inline constexpr int64_t kPanel = 16;  // columns of one packed panel

/// Rows of lines, of which each image has some, all evenly spaced: what tiles read.
struct EvenRows {
  const std::byte* base = nullptr;  // the first row, without a tap's offset
  const int64_t* taps = nullptr;    // where the elements of each tap are from a row
  int64_t step_bytes = 0, line_rows = 0;
  int64_t line_bytes = 0, image_lines = 1;
  int64_t image_bytes = 0;

  /// The same with lines as long as they can be.
  EvenRows in_long_lines() const {
    EvenRows out = *this;
    if (line_rows == 1) out.step_bytes = line_bytes;
    if (out.step_bytes * line_rows != line_bytes) return out;
    out.line_rows *= image_lines;
    out.image_lines = 1;
    out.line_bytes = image_bytes;
    return out;
  }
};

/// Where the elements of the left operand stand.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// table[tap * stride + r] = the k elements of row first + r for that tap, 0 <= r < count.
  virtual void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const = 0;
  /// The same of the first row alone where all are evenly spaced: bytes from each to the next, of every tap; else 0.
  virtual int64_t fill_even(int64_t first, int64_t count, const std::byte** table, int64_t stride) const {
    fill(first, count, table, stride);
    return 0;
  }
  /// These rows are about to be asked for, and no others until the next call.
  virtual void fetch(int64_t /*first*/, int64_t /*count*/) const {}
  /// All rows, of which there are so many; without a base where they are not evenly spaced.
  virtual EvenRows even_rows(int64_t /*count*/) const { return {}; }
};

/// Rows `ld_bytes` apart, one tap.
class DenseRows final : public RowSource {
 public:
  DenseRows(const std::byte* base, int64_t ld_bytes) : base_(base), ld_bytes_(ld_bytes) {}
  void fill(int64_t first, int64_t count, const std::byte** table, int64_t /*stride*/) const override {
    for (int64_t r = 0; r < count; ++r) table[r] = base_ + (first + r) * ld_bytes_;
  }
  int64_t fill_even(int64_t first, int64_t /*count*/, const std::byte** table, int64_t /*stride*/) const override {
    table[0] = base_ + first * ld_bytes_;
    return ld_bytes_;
  }
  EvenRows even_rows(int64_t count) const override {
    static constexpr int64_t kTap = 0;
    return {.base = base_, .taps = &kTap, .step_bytes = ld_bytes_, .line_rows = count};
  }

 private:
  const std::byte* base_;
  int64_t ld_bytes_;
};

/// Sizes of a product, fixed when the kernel is made.
struct PanelShape {
  int64_t rows = 0;
  int64_t taps = 1;
  int64_t k = 0;
  int64_t groups = 1;      // independent products side by side: columns g * cols .. read elements g * k .. of the rows
  int64_t cols = 0;        // per group
  int64_t a_bytes = 0;     // distinct bytes of the left operand, for the choice of the split
  int64_t elem_bytes = 4;  // of both operands
  DType weights = DType::f32;  // f16 or bf16: weights of that type beside rows of f32
  bool whole_steps = false;    // rows may be read up to whole steps

  int64_t panels_per_group() const { return (cols + kPanel - 1) / kPanel; }
  /// Elements that a multiplication takes at once of each row and column: as many weights as four bytes hold.
  int64_t step() const { return weights == DType::f32 ? 4 / elem_bytes : 2; }
  int64_t steps() const { return (k + step() - 1) / step(); }
  /// One panel, [taps][steps][16][step].
  int64_t panel_bytes() const { return taps * steps() * kPanel * 4; }
  /// Elements that are read and written, but for weights.
  double moved_bytes() const { return static_cast<double>(a_bytes + rows * groups * cols * elem_bytes); }
  /// All of them; of weights of 16 bits an even number, as tiles read two.
  int64_t packed_bytes() const {
    const int64_t panels = groups * panels_per_group();
    return (weights == DType::f32 ? panels : (panels + 1) / 2 * 2) * panel_bytes();
  }
  /// Whether sharing it among threads takes longer than it does.
  bool is_small() const { return rows * cols * groups * k * taps < 32768; }
};

/// Where the element of (group, column, tap, k) of a weight stands:
/// weight[group * group + col * col + tap * tap + k * k].
struct PackStrides {
  int64_t group, col, tap, k;
};

/// The panels [groups][panels] of a weight, of elements as wide as Element; zeros behind the last column and k.
template <typename Element>
void pack_panels(const PanelShape& shape, const Element* weight, const PackStrides& strides, Element* packed);
/// The same of floats, f32 or of the shape's 16 bits, of which f16 stand as [2][16] and bf16 as [16][2].
void pack_float_panels(const PanelShape& shape, const std::byte* weight, const PackStrides& strides, std::byte* packed);
/// The same of some of them, by this thread.
template <typename Element>
void pack_panels(const PanelShape& shape, Share panels, const Element* weight, const PackStrides& strides,
                 Element* packed);

/// One call of a microkernel: some rows times some panels side by side.
struct TilePlace {
  const std::byte* const* rows;  // [tap * rows_stride + r]; of evenly spaced rows those of the first alone
  int64_t rows_stride;
  int64_t even_bytes;        // from each row to the next, 0 where they are not evenly spaced
  int64_t row_offset_bytes;  // of the group's elements in a row
  int64_t row;               // the first, of the product
  int64_t count;             // of rows
  int64_t panel;             // the first, counted over all groups
  int panels;
  int64_t col, cols;          // the first column of the output, and how many are written
  int64_t fetch_begin_bytes;  // where in the packed panels those begin that are to be brought near meanwhile,
  int64_t fetch_step_bytes;   // and how far a step of k goes in them; 0 for none
};

class PanelSplit {
 public:
  PanelSplit() = default;
  /// max_rows[p]: the most rows of a tile of p panels, 0 where there is no such tile; tiles are `tile_panels` wide.
  PanelSplit(const PanelShape& shape, std::span<const int> max_rows, int tile_panels);

  int64_t scratch_bytes_per_thread() const { return scratch_bytes_per_thread_; }
  /// The most rows that are asked of a source at once.
  int64_t block_rows() const { return std::min(row_block_, std::max<int64_t>(1, shape_.rows)); }
  /// Whether weights stay in the second level, read again for every tile's rows.
  bool keeps_weights() const { return keeps_weights_; }
  int64_t strips() const { return shape_.groups * strips_per_group_; }

  /// tile(TilePlace) for each tile of a thread's share. `scratch` is this thread's own.
  template <typename Tile>
  void for_share(const RowSource& source, int thread, int threads, std::byte* scratch, const Tile& tile) const {
    if (threads == 1) return for_tiles(source, {0, shape_.rows}, {0, strips()}, scratch, tile);
    const ThreadGrid grid = grid_for(threads);
    for_tiles(source, share_of(shape_.rows, thread % grid.row_parts, grid.row_parts), strips_of(grid, thread), scratch,
              tile);
  }
  /// The columns of a thread's share. A block of rows has them in this order, each for all of its rows.
  Share columns_of(int thread, int threads) const;

  /// The same of the tiles of rows and strips given.
  template <typename Tile>
  void for_tiles(const RowSource& source, Share rows, Share strips, std::byte* scratch, const Tile& tile) const {
    if (strips.begin == strips.end) return;
    const auto** table = reinterpret_cast<const std::byte**>(scratch);
    auto* even_bytes = reinterpret_cast<int64_t*>(scratch + table_bytes());  // of each tile
    const bool asks_even = shape_.elem_bytes == 4;  // bytes are read through pointers, which is faster
    // Blocks of equal size, so that the last one is not a sliver.
    const int64_t blocks = parts_of(rows.end - rows.begin, row_block_);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t block_begin = rows.begin + begin_of(rows.end - rows.begin, block, blocks);
      const int64_t block_rows = rows.begin + begin_of(rows.end - rows.begin, block + 1, blocks) - block_begin;
      const int64_t tiles = parts_of(block_rows, tile_rows_);
      // Of tiles of equal size, and what is left over, which some of them take one of: begin_of without its divisions.
      const int64_t size = tiles <= 1 ? block_rows : block_rows / tiles, over = block_rows - size * tiles;
      // begin(i), count(i) of each tile.
      const auto each_tile = [&](const auto& with) {
        for (int64_t i = 0, begin = 0, left = 0, count = 0; i < tiles; ++i, begin += count) {
          left += over;
          count = size + (left >= tiles ? 1 : 0);
          if (left >= tiles) left -= tiles;
          with(i, begin, count);
        }
      };
      source.fetch(block_begin, block_rows);
      if (asks_even) {
        each_tile([&](int64_t i, int64_t begin, int64_t count) {
          even_bytes[i] = source.fill_even(block_begin + begin, count, table + begin, block_rows);
          if (strips.end - strips.begin < kLeastStripsOfCopies || !collide(even_bytes[i], count)) return;
          std::byte* const room = scratch + room_begin_ + begin * apart_bytes();
          for (int64_t r = 0; r < count; ++r)
            std::copy_n(table[begin] + r * even_bytes[i], shape_.k * 4, room + r * apart_bytes());
          table[begin] = room;
          even_bytes[i] = apart_bytes();
        });
      } else {
        source.fill(block_begin, block_rows, table, block_rows);
      }
      Strip following = strip(strips.begin);
      for (int64_t number = strips.begin; number < strips.end; ++number) {
        const Strip now = following;
        const bool is_last = number + 1 == strips.end;
        if (!is_last) following = strip(number + 1);
        // The next panels are fetched while this strip's tiles run, by each its part of them.
        const int64_t line_bytes = kPanel * 4;
        const int64_t fetch_step = is_last ? 0 : std::min(line_bytes, parts_of(line_bytes * now.panels, tiles));
        each_tile([&](int64_t i, int64_t begin, int64_t count) {
          const bool fetch = fetch_step != 0 && i * fetch_step < line_bytes * now.panels;
          tile(TilePlace{.rows = table + begin,
                         .rows_stride = block_rows,
                         .even_bytes = asks_even ? even_bytes[i] : 0,
                         .row_offset_bytes = now.row_offset_bytes,
                         .row = block_begin + begin,
                         .count = count,
                         .panel = now.panel,
                         .panels = static_cast<int>(now.panels),
                         .col = now.col,
                         .cols = now.cols,
                         .fetch_begin_bytes = fetch ? fetch_begin_of(following, i * fetch_step) : 0,
                         .fetch_step_bytes = fetch ? fetch_step : 0});
        });
      }
    }
  }

 private:
  // Columns of one group that a tile computes at once.
  struct Strip {
    int64_t panel, panels;  // the first, counted over all groups, and how many
    int64_t col, cols;
    int64_t row_offset_bytes;
  };
  ThreadGrid grid_for(int threads) const;
  // The first level of the caches we know keeps few lines of those that lie so far apart: of a tile's rows, which are
  // read side by side, each would push others out before all of its line is used. Their copies lie a line further
  // apart.
  static constexpr int64_t kColliding_bytes = 4096, kLinesKept = 8, kLeastStripsOfCopies = 3;
  bool collide(int64_t even_bytes, int64_t rows) const {
    return room_begin_ > 0 && rows > kLinesKept && even_bytes > 0 && even_bytes % kColliding_bytes == 0;
  }
  int64_t apart_bytes() const { return shape_.k * 4 + 64; }
  int64_t table_bytes() const {
    return block_rows() * std::max<int64_t>(1, shape_.taps) * static_cast<int64_t>(sizeof(const std::byte*));
  }
  Share strips_of(const ThreadGrid& grid, int thread) const {
    return share_of(strips(), thread / grid.row_parts, grid.col_parts);
  }
  Strip strip(int64_t number) const;
  // Where a tile begins to fetch that strip, of whose every panel's line other tiles have fetched so many bytes.
  int64_t fetch_begin_of(const Strip& strip, int64_t fetched_bytes) const {
    return strip.panel * panel_bytes_ + fetched_bytes * (panel_bytes_ / (kPanel * 4));
  }
  // Of most products there is one part each, and divisions take longer than the smallest products.
  static int64_t parts_of(int64_t total, int64_t most) {
    return total <= most ? (total > 0 ? 1 : 0) : (total + most - 1) / most;
  }
  static int64_t begin_of(int64_t total, int64_t part, int64_t parts) {
    return parts == 1 ? total * part : total * part / parts;
  }

  PanelShape shape_;
  int64_t panel_bytes_ = 0;
  int tile_panels_ = 1;
  int tile_rows_ = 1;
  int64_t row_block_ = 1;
  bool keeps_weights_ = false;
  int64_t scratch_bytes_per_thread_ = 0;
  int64_t room_begin_ = 0;  // of the copies of a block's rows, in scratch; 0 where there are none
  // A group's strips are as wide as a tile, but for the last: of these, where they begin behind the wide ones and end.
  int64_t strips_per_group_ = 0;
  std::vector<int> last_panels_;
};

}  // namespace hetnn::kernels
