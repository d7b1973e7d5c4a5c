// Tensors seen as rows of channels.
#include "hetnn/kernels/row_view.h"

#include <sstream>

#include "hetnn/base/error.h"

namespace hetnn::kernels {

RowView row_view(const TensorView& view) {
  RowView rows;
  if (view.rank == 0) return rows;
  if (view.layout == Layout::nhwc) {
    rows.cols = view.dims[1];
    rows.pitch = view.pitch_elems;
    for (int axis = 2; axis < view.rank; ++axis) rows.rows_per_batch *= view.dims[static_cast<size_t>(axis)];
    rows.rows = view.dims[0] * rows.rows_per_batch;
    return rows;
  }
  rows.cols = view.dims[static_cast<size_t>(view.rank - 1)];
  rows.pitch = rows.cols;
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    const int64_t dim = view.dims[static_cast<size_t>(axis)];
    rows.rows *= dim;
    if (axis > 0) rows.rows_per_batch *= dim;
  }
  return rows;
}

std::optional<TensorView> as_nhwc(const TensorView& view) {
  if (view.layout == Layout::nhwc) return view;
  if (view.rank < 3 || view.rank > 5) return std::nullopt;
  int64_t pixels = 1;
  for (int axis = 2; axis < view.rank; ++axis) pixels *= view.dims[static_cast<size_t>(axis)];
  if (view.dims[1] != 1 && pixels != 1) return std::nullopt;
  return TensorView::nhwc(view.dtype, view.shape());
}

std::string view_text(const TensorView& view) {
  std::ostringstream out;
  out << '[';
  for (int axis = 0; axis < view.rank; ++axis) out << (axis == 0 ? "" : ",") << view.dims[static_cast<size_t>(axis)];
  out << "] " << (view.packed ? "packed" : layout_name(view.layout));
  return out.str();
}

size_t checked_axis(std::string_view op, int64_t axis, int rank) {
  const int64_t out = axis < 0 ? axis + rank : axis;
  HETNN_ASSERT(out >= 0 && out < rank, op, ": axis ", axis, " of ", rank);
  return static_cast<size_t>(out);
}

}  // namespace hetnn::kernels
