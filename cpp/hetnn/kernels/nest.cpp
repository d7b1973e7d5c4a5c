// Builds loops over several tensors.
#include "hetnn/kernels/nest.h"

#include <algorithm>
#include <numeric>

#include "hetnn/base/error.h"
#include "hetnn/base/strides.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {

std::array<int64_t, 8> strides_of(const TensorView& view) {
  std::array<int64_t, 8> strides{};
  if (view.layout == Layout::plain) {
    std::ranges::copy(plain_strides(view.shape()), strides.begin());
    return strides;
  }
  if (view.layout == Layout::strided) return view.strides;
  strides[1] = 1;
  int64_t step = view.pitch_elems;
  for (int axis = view.rank - 1; axis >= 2; --axis) {
    strides[static_cast<size_t>(axis)] = step;
    step *= view.dims[static_cast<size_t>(axis)];
  }
  strides[0] = step;
  return strides;
}

bool broadcasts(const TensorView& view, std::span<const int64_t> shape) {
  if (view.shape().size() > shape.size()) return false;
  const auto aligned = shape.last(view.shape().size());
  return std::ranges::equal(view.shape(), aligned, [](int64_t dim, int64_t to) { return dim == to || dim == 1; });
}

NestOperand broadcast_operand(const TensorView& view, std::span<const int64_t> shape, std::string_view what) {
  HETNN_ASSERT(broadcasts(view, shape), what, " is ", view_text(view));
  NestOperand operand;
  const std::array<int64_t, 8> strides = strides_of(view);
  const size_t skipped = shape.size() - view.shape().size();
  for (size_t axis = 0; axis < view.shape().size(); ++axis)
    operand.strides[skipped + axis] = view.dims[axis] == 1 ? 0 : strides[axis];
  return operand;
}

Nest::Nest(std::span<const int64_t> shape, std::vector<NestOperand> operands) {
  HETNN_ASSERT(!operands.empty());
  for (const int64_t dim : shape) elems_ *= dim;
  std::vector<size_t> order;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] != 1) order.push_back(axis);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return operands[0].strides[a] > operands[0].strides[b]; });
  strides_.resize(operands.size());
  for (const NestOperand& operand : operands) offsets_.push_back(operand.offset);
  for (const size_t axis : order) {
    bool merges = !dims_.empty();
    for (size_t i = 0; merges && i < operands.size(); ++i)
      merges = strides_[i].back() == operands[i].strides[axis] * shape[axis];
    if (merges) {
      dims_.back() *= shape[axis];
      for (size_t i = 0; i < operands.size(); ++i) strides_[i].back() = operands[i].strides[axis];
    } else {
      dims_.push_back(shape[axis]);
      for (size_t i = 0; i < operands.size(); ++i) strides_[i].push_back(operands[i].strides[axis]);
    }
  }
  const bool no_axes = dims_.empty();
  while (dims_.size() < 2) {
    dims_.insert(dims_.begin(), 1);
    for (std::vector<int64_t>& strides : strides_) strides.insert(strides.begin(), 0);
  }
  // A single element is a dense run of one for every operand.
  if (no_axes)
    for (std::vector<int64_t>& strides : strides_) strides.back() = 1;
}

void Nest::locate(int64_t row, int64_t* offsets) const {
  std::copy(offsets_.begin(), offsets_.end(), offsets);
  for (size_t axis = dims_.size() - 1; axis-- > 0;) {
    const int64_t index = row % dims_[axis];
    row /= dims_[axis];
    if (index == 0) continue;
    for (size_t i = 0; i < offsets_.size(); ++i) offsets[i] += index * strides_[i][axis];
  }
}

void Nest::each_tile(int thread, int threads, int64_t max_elems, int64_t max_cols,
                     void (*call)(void* body, const Tile& tile), void* body) const {
  if (elems_ == 0) return;
  const int64_t tile_cols = std::min({cols(), max_elems, max_cols});
  const int64_t tile_rows = std::clamp<int64_t>(max_elems / tile_cols, 1, rows());
  const int64_t col_tiles = (cols() + tile_cols - 1) / tile_cols;
  const int64_t row_tiles = (rows() + tile_rows - 1) / tile_rows;
  const int64_t planes = elems_ / (rows() * cols());
  NestOffsets offsets(operand_count());
  const Share share = share_of(planes * row_tiles * col_tiles, thread, threads);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t col = item % col_tiles * tile_cols;
    const int64_t row = item / col_tiles % row_tiles * tile_rows;
    const int64_t plane = item / (col_tiles * row_tiles);
    locate(plane * rows() + row, offsets.data());
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += col * col_stride(i);
    call(body, {std::min(tile_rows, rows() - row), std::min(tile_cols, cols() - col), offsets.data()});
  }
}

}  // namespace hetnn::kernels
