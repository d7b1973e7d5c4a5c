// Cuts products of rows with packed panels.
#include "hetnn/kernels/gemm/split.h"

#include "hetnn/kernels/move/transpose.h"
#include "hetnn/kernels/query/machine.h"

namespace hetnn::kernels {
namespace {

// A block of rows keeps its pointer table in the first-level cache's neighbourhood and its elements in the second
// level.
constexpr int64_t kTableEntries = 8192;
constexpr int64_t kRowBlockMax = 1024;
// Of the second level, what a block of rows may have, and weights that stay there beside others.
int64_t row_block_bytes() { return this_machine().cache_bytes[kSecondLevel] / 4 * 3; }
int64_t kept_weight_bytes() { return this_machine().cache_bytes[kSecondLevel] / 8 * 3; }

// Bytes that one thread packs before it asks for more.
constexpr int64_t kPackedAtOnce_bytes = 1 << 19;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

PanelSplit::PanelSplit(const PanelShape& shape, std::span<const int> max_rows, int tile_panels)
    : shape_(shape),
      panel_bytes_(shape.panel_bytes()),
      tile_panels_(tile_panels),
      tile_rows_(max_rows[static_cast<size_t>(tile_panels)]) {
  const int64_t panels = shape_.panels_per_group();
  const int rest = static_cast<int>(panels % tile_panels_);
  last_panels_.push_back(0);
  for (int panel = 0, wide = 0; panel < rest; panel += wide) {
    wide = rest - panel;
    while (max_rows[static_cast<size_t>(wide)] == 0) --wide;
    last_panels_.push_back(panel + wide);
  }
  strips_per_group_ = panels / tile_panels_ + static_cast<int64_t>(last_panels_.size()) - 1;
  const int64_t by_table = kTableEntries / std::max<int64_t>(1, shape_.taps);
  const int64_t by_bytes = row_block_bytes() / std::max<int64_t>(4, shape_.k * shape_.elem_bytes);
  const int64_t block = std::min({by_table, by_bytes, kRowBlockMax});
  row_block_ = std::max<int64_t>(1, block / tile_rows_) * tile_rows_;
  // Weights that stay in the second level are read again for every tile's rows, so that whole rows are written at once.
  keeps_weights_ = shape_.elem_bytes == 4 && shape_.groups == 1 && shape_.packed_bytes() <= kept_weight_bytes() &&
                   panels > tile_panels_;
  if (keeps_weights_) row_block_ = tile_rows_;
  const int64_t tiles = parts_of(block_rows(), tile_rows_);
  scratch_bytes_per_thread_ = ceil_div(table_bytes() + tiles * static_cast<int64_t>(sizeof(int64_t)), 64) * 64;
  const bool are_dense = shape_.elem_bytes == 4 && shape_.taps == 1 && shape_.groups == 1;
  if (are_dense && strips() >= kLeastStripsOfCopies && shape_.rows > kLinesKept &&
      shape_.k * 4 % kColliding_bytes == 0) {
    room_begin_ = scratch_bytes_per_thread_;
    scratch_bytes_per_thread_ += block_rows() * apart_bytes();
  }
}

PanelSplit::Strip PanelSplit::strip(int64_t number) const {
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
          .row_offset_bytes = group * shape_.k * shape_.elem_bytes};
}

Share PanelSplit::columns_of(int thread, int threads) const {
  const Share strips = strips_of(threads == 1 ? ThreadGrid() : grid_for(threads), thread);
  if (strips.begin == strips.end) return {0, 0};
  const Strip last = strip(strips.end - 1);
  return {strip(strips.begin).col, last.col + last.cols};
}

ThreadGrid PanelSplit::grid_for(int threads) const {
  return thread_grid(threads, [&](ThreadGrid grid) {
    const auto rows = static_cast<double>(ceil_div(shape_.rows, grid.row_parts));
    const auto cols = static_cast<double>(ceil_div(strips(), grid.col_parts) * tile_panels_ * kPanel);
    // Cycles at 32 multiplications each, and bytes at a rate between the second and the third cache level.
    const double compute = rows * cols * static_cast<double>(shape_.steps() * shape_.taps) / 32;
    const double traffic = static_cast<double>(shape_.packed_bytes()) / grid.col_parts / 16 +
                           static_cast<double>(shape_.a_bytes) / grid.row_parts / 16;
    return compute + traffic + waiting_cycles(grid, shape_.moved_bytes());
  });
}

// A panel's part of one tap, [k][16], of columns or of rows that lie together, by whole vectors; false where neither
// do.
bool pack_vectors(const float* from, int64_t k, int64_t cols, const PackStrides& strides, float* to) {
  if (strides.col != 1 && strides.k != 1) return false;
  if (cols < kPanel) std::fill_n(to, k * kPanel, 0.0f);
  if (strides.k == 1) {
    transpose(from, strides.col, to, kPanel, cols, k);
  } else if (cols == kPanel) {
    for (int64_t i = 0; i < k; ++i) std::copy_n(from + i * strides.k, kPanel, to + i * kPanel);
  } else {
    for (int64_t i = 0; i < k; ++i) std::copy_n(from + i * strides.k, cols, to + i * kPanel);
  }
  return true;
}

template <typename Element>
void pack_panels(const PanelShape& shape, Share panels, const Element* weight, const PackStrides& strides,
                 Element* packed) {
  const int64_t step = shape.step(), panel_elems = shape.panel_bytes() / static_cast<int64_t>(sizeof(Element));
  const bool k_first = shape.weights == DType::f16;
  const int64_t of_col = k_first ? 1 : step, of_k = k_first ? kPanel : 1;
  for (int64_t number = panels.begin; number < panels.end; ++number) {
    const int64_t group = number / shape.panels_per_group(), panel = number % shape.panels_per_group();
    const int64_t cols = std::min(kPanel, shape.cols - panel * kPanel);
    Element* to = packed + number * panel_elems;
    for (int64_t tap = 0; tap < shape.taps; ++tap) {
      const Element* from = weight + group * strides.group + panel * kPanel * strides.col + tap * strides.tap;
      if constexpr (std::is_same_v<Element, float>) {
        if (pack_vectors(from, shape.k, cols, strides, to)) {
          to += shape.k * kPanel;
          continue;
        }
      }
      for (int64_t k = 0; k < shape.k; k += step, to += kPanel * step) {
        if (cols < kPanel || k + step > shape.k) std::fill_n(to, kPanel * step, Element{});
        const int64_t some = std::min(step, shape.k - k);
        for (int64_t c = 0; c < cols; ++c)
          for (int64_t s = 0; s < some; ++s) to[c * of_col + s * of_k] = from[c * strides.col + (k + s) * strides.k];
      }
    }
  }
}

template <typename Element>
void pack_panels(const PanelShape& shape, const Element* weight, const PackStrides& strides, Element* packed) {
  // Few numbers are packed before another thread has woken.
  const int64_t at_once = std::max<int64_t>(1, kPackedAtOnce_bytes / std::max<int64_t>(1, shape.panel_bytes()));
  const int64_t all = shape.groups * shape.panels_per_group();
  parallel_each(ceil_div(all, at_once), [&](int64_t k) {
    pack_panels(shape, {k * at_once, std::min(all, (k + 1) * at_once)}, weight, strides, packed);
  });
}

void pack_float_panels(const PanelShape& shape, const std::byte* weight, const PackStrides& strides,
                       std::byte* packed) {
  if (shape.weights == DType::f32) {
    pack_panels(shape, reinterpret_cast<const float*>(weight), strides, reinterpret_cast<float*>(packed));
  } else {
    pack_panels(shape, reinterpret_cast<const uint16_t*>(weight), strides, reinterpret_cast<uint16_t*>(packed));
  }
}

template void pack_panels(const PanelShape&, const float*, const PackStrides&, float*);
template void pack_panels(const PanelShape&, const int8_t*, const PackStrides&, int8_t*);
template void pack_panels(const PanelShape&, Share, const float*, const PackStrides&, float*);
template void pack_panels(const PanelShape&, Share, const int8_t*, const PackStrides&, int8_t*);

}  // namespace hetnn::kernels
