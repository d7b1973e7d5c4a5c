// Shape arithmetic of operand views.
#include "hetnn/kernels/kernel.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::kernels {
namespace {

TensorView make_view(DType dtype, std::span<const int64_t> shape) {
  TensorView view;
  if (shape.size() > view.dims.size())
    throw Unsupported(text("a kernel operand has rank ", shape.size(), "; kernels take at most rank ", view.dims.size(),
                           ". Merge axes before calling it."));
  view.dtype = dtype;
  view.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), view.dims.begin());
  return view;
}

}  // namespace

int64_t TensorView::elems() const {
  int64_t count = 1;
  for (const int64_t dim : shape()) count *= dim;
  return count;
}

int64_t TensorView::span_bytes() const {
  const int64_t count = elems();
  if (count == 0 || layout == Layout::plain) return count * dtype_bytes(dtype);
  if (layout == Layout::strided) {
    int64_t last = 0;
    for (size_t k = 0; k < static_cast<size_t>(rank); ++k) last += (dims[k] - 1) * strides[k];
    return (last + 1) * dtype_bytes(dtype);
  }
  return ((count / dims[1] - 1) * pitch_elems + dims[1]) * dtype_bytes(dtype);
}

TensorView TensorView::plain(DType dtype, std::span<const int64_t> shape) { return make_view(dtype, shape); }

TensorView TensorView::nhwc(DType dtype, std::span<const int64_t> shape, int64_t pitch_elems) {
  TensorView view = make_view(dtype, shape);
  HETNN_ASSERT(view.rank >= 3 && view.rank <= 5, "rank ", view.rank);
  view.layout = Layout::nhwc;
  view.pitch_elems = pitch_elems == 0 ? view.dims[1] : pitch_elems;
  HETNN_ASSERT(view.pitch_elems >= view.dims[1], "pitch ", view.pitch_elems, ", channels ", view.dims[1]);
  return view;
}

TensorView TensorView::strided(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  TensorView view = make_view(dtype, shape);
  HETNN_ASSERT(shape.size() == strides.size(), strides.size(), " strides of ", shape.size(), " axes");
  view.layout = Layout::strided;
  std::ranges::copy(strides, view.strides.begin());
  return view;
}

TensorView TensorView::of_weight(DType dtype, std::span<const int64_t> shape) {
  TensorView view = make_view(dtype, shape);
  view.packed = true;
  return view;
}

}  // namespace hetnn::kernels
