// Products of rows with packed panels: the shared engine of linear, matmul, convolution and transposed convolution.
//
// out[row][col] = clamp(sum over taps and k of a(row, tap)[k] * panel[col/16][tap][k][col%16] + bias[col] +
// addend[row][col]), then the epilogue. Work is split over threads by rows, by columns or both, never
// along k, so that results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/micro.h"

namespace hetnn::kernels {

/// Where the elements of the left operand stand.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// table[tap * stride + r] = the k elements of row first + r for that tap, 0 <= r < count.
  virtual void fill(int64_t first, int64_t count, const float** table, int64_t stride) const = 0;
};

/// Rows `ld` elements apart, one tap.
class DenseRows final : public RowSource {
 public:
  DenseRows(const float* base, int64_t ld) : base_(base), ld_(ld) {}
  void fill(int64_t first, int64_t count, const float** table, int64_t /*stride*/) const override {
    for (int64_t r = 0; r < count; ++r) table[r] = base_ + (first + r) * ld_;
  }

 private:
  const float* base_;
  int64_t ld_;
};

/// Sizes of a product, fixed when the kernel is made.
struct PanelShape {
  int64_t rows = 0;
  int64_t taps = 1;
  int64_t k = 0;
  int64_t groups = 1;   // independent products side by side: columns g * cols .. read elements g * k .. of the rows
  int64_t cols = 0;     // per group
  int64_t a_bytes = 0;  // distinct bytes of the left operand, for the choice of the split

  int64_t panels_per_group() const { return (cols + kPanel - 1) / kPanel; }
  int64_t packed_elems() const { return groups * panels_per_group() * taps * k * kPanel; }
  /// Whether sharing it among threads takes longer than it does.
  bool is_small() const { return rows * cols * k < 32768; }
};

/// Pointers and strides of one run.
struct PanelRun {
  const RowSource* source = nullptr;
  const float* panels = nullptr;
  const float* bias = nullptr;    // groups * cols elements, or null
  const float* addend = nullptr;  // rows ld_addend apart, or null
  int64_t ld_addend = 0;
  float* out = nullptr;
  int64_t ld_out = 0;
  int64_t first_row = 0;  // number of the first row as the epilogue counts
  const std::byte* const* inputs = nullptr;
};

class PanelProduct {
 public:
  PanelProduct() = default;
  PanelProduct(const PanelShape& shape, EpiloguePlan epilogue);

  const PanelShape& shape() const { return shape_; }
  const RegisterPart& register_part() const { return registers_; }
  int64_t scratch_bytes_per_thread() const { return scratch_bytes_per_thread_; }
  /// A run on these pointers, the addend of the register part among them; its source is still to be set.
  PanelRun run_on(const std::byte* const* inputs, const std::byte* panels, const std::byte* bias, std::byte* out,
                  int64_t ld_out) const;
  /// The most rows that are asked of a source at once.
  int64_t block_rows() const;

  /// This thread's share. `scratch` is this thread's own.
  void run(const PanelRun& run, int thread, int threads, std::byte* scratch) const;
  /// The same of some of the rows, few as a rule: threads share the columns.
  void run_group(const PanelRun& run, Share rows, int thread, int threads, std::byte* scratch) const;

 private:
  struct Grid {
    int row_parts;
    int col_parts;
  };
  Grid grid_for(int threads) const;
  // Columns of one group that a tile computes at once.
  struct Strip {
    int64_t panel, panels;  // the first, counted over all groups, and how many
    int64_t col, cols;
    int64_t row_offset;  // of the group's elements in a row
  };
  int64_t strips() const { return shape_.groups * strips_per_group_; }
  Strip strip(int64_t number) const;
  void run_share(const PanelRun& run, Share rows, Share strips, std::byte* scratch) const;

  PanelShape shape_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  const MicroTable* micro_ = nullptr;
  int tile_panels_ = 1;
  int tile_rows_ = 1;
  int64_t row_block_ = 1;
  int64_t scratch_bytes_per_thread_ = 0;
  // A group's strips are as wide as a tile, but for the last: of these, where they begin behind the wide ones and end.
  int64_t strips_per_group_ = 0;
  std::vector<int> last_panels_;
};

/// Packs weight[groups * cols][k] per tap into [groups][panels][taps][k][16], zeros behind the last column. The element
/// of (group, column, tap, k) is weight[group * group_stride + col * col_stride + tap * tap_stride + k * k_stride].
struct PackStrides {
  int64_t group, col, tap, k;
};
void pack_panels(const PanelShape& shape, const float* weight, const PackStrides& strides, float* packed);

}  // namespace hetnn::kernels
