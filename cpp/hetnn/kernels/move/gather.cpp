// gather: slices of x chosen by an index tensor (index_select, embedding); gather_elements: single elements.
#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/move/indices.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

class Gather final : public Kernel {
 public:
  Gather(const KernelCall& call, size_t axis) : wide_(call.inputs[1].dtype == DType::i64) {
    const TensorView& x = call.inputs[0];
    for (size_t a = 0; a < axis; ++a) outer_ *= x.dims[a];
    slice_bytes_ = dtype_bytes(x.dtype);
    for (size_t a = axis + 1; a < static_cast<size_t>(x.rank); ++a) slice_bytes_ *= x.dims[a];
    size_ = x.dims[axis];
    count_ = call.inputs[1].elems();
  }

  bool serial() const override { return outer_ * count_ * slice_bytes_ < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    wide_ ? run_with(context, reinterpret_cast<const int64_t*>(inputs[1]), inputs[0], outputs[0])
          : run_with(context, reinterpret_cast<const int32_t*>(inputs[1]), inputs[0], outputs[0]);
  }

 private:
  template <typename Index>
  void run_with(const RunContext& context, const Index* indices, const std::byte* x, std::byte* y) const {
    const Share share = share_of(outer_ * count_, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end;) {
      const int64_t outer = item / count_, begin = item % count_, end = std::min(count_, begin + share.end - item);
      take(indices, begin, end, x + outer * size_ * slice_bytes_, y + outer * count_ * slice_bytes_);
      item += end - begin;
    }
  }

  // Slices as small as a number are copied as one.
  template <typename Index>
  void take(const Index* indices, int64_t begin, int64_t end, const std::byte* x, std::byte* y) const {
    if (slice_bytes_ == sizeof(uint32_t)) return take_numbers<uint32_t>(indices, begin, end, x, y);
    if (slice_bytes_ == sizeof(uint64_t)) return take_numbers<uint64_t>(indices, begin, end, x, y);
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(y + i * slice_bytes_, x + position(indices[i], size_) * slice_bytes_,
                  static_cast<size_t>(slice_bytes_));
  }

  template <typename U, typename Index>
  void take_numbers(const Index* indices, int64_t begin, int64_t end, const std::byte* x, std::byte* y) const {
    const auto* from = reinterpret_cast<const U*>(x);
    auto* to = reinterpret_cast<U*>(y);
    for (int64_t i = begin; i < end; ++i) to[i] = from[position(indices[i], size_)];
  }

  bool wide_;
  int64_t outer_ = 1, size_ = 0, count_ = 0, slice_bytes_ = 0;
};

/// Elements picked along an axis, all other axes alike in x and the indices.
class GatherElements final : public Kernel {
 public:
  GatherElements(const KernelCall& call, const AxisSplit& split)
      : split_(split), dtype_(call.inputs[0].dtype), wide_(call.inputs[1].dtype == DType::i64) {}

  bool serial() const override { return split_.outer * split_.count * split_.inner < 16384; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    visit_width(dtype_, [&](auto zero) {
      using U = decltype(zero);
      const auto* x = reinterpret_cast<const U*>(inputs[0]);
      auto* y = reinterpret_cast<U*>(outputs[0]);
      wide_ ? pick(context, reinterpret_cast<const int64_t*>(inputs[1]), x, y)
            : pick(context, reinterpret_cast<const int32_t*>(inputs[1]), x, y);
    });
  }

 private:
  template <typename Index, typename U>
  void pick(const RunContext& context, const Index* indices, const U* x, U* y) const {
    const AxisSplit split = split_;  // what is written is none of it
    const Share share = share_of(split.outer * split.count, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end;) {
      const int64_t outer = item / split.count, first = item % split.count;
      const int64_t rows = std::min(split.count - first, share.end - item);
      const U* from = x + outer * split.size * split.inner;
      const Index* at = indices + item * split.inner;
      U* to = y + item * split.inner;
      if (split.inner == 1) {
        for (int64_t k = 0; k < rows; ++k) to[k] = from[position(at[k], split.size)];
      } else {
        for (int64_t k = 0; k < rows; ++k, at += split.inner, to += split.inner)
          for (int64_t i = 0; i < split.inner; ++i) to[i] = from[position(at[i], split.size) * split.inner + i];
      }
      item += rows;
    }
  }

  AxisSplit split_;
  DType dtype_;
  bool wide_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather(const KernelCall& call) {
  if (call.inputs.size() < 2 || call.outputs.size() != 1)
    throw InvalidModel("gather takes x and indices and gives one output. Check the call against kernels/move/move.h.");
  const TensorView& x = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const TensorView& y = call.outputs[0];
  const int64_t given = call.params.integer("axis", 0);
  const int64_t axis = given < 0 ? given + x.rank : given;
  if (axis < 0 || axis >= x.rank)
    throw InvalidModel(
        text("gather: axis must lie in [", -x.rank, ", ", x.rank, "); got ", given, ". Check the attribute."));
  if (indices.dtype != DType::i64 && indices.dtype != DType::i32)
    throw InvalidModel(text("gather: indices must be i64 or i32; got ", dtype_name(indices.dtype), ". Insert a cast."));
  if (x.layout != Layout::plain || y.layout != Layout::plain || indices.layout != Layout::plain)
    throw Unsupported(text("gather reads and writes plain tensors; got ", view_text(x), " and ", view_text(y),
                           ". Insert a copy to the plain layout."));
  const int64_t size = x.dims[static_cast<size_t>(axis)];
  if (x.dtype != y.dtype || (size == 0 && indices.elems() > 0) ||
      (size > 0 && y.elems() != x.elems() / size * indices.elems()))
    throw InvalidModel(text("gather: the output must be x with axis ", axis, " replaced by the indices' axes; got ",
                            view_text(x), ", indices ", view_text(indices), ", output ", view_text(y),
                            ". Infer the output's shape."));
  return std::make_unique<Gather>(call, static_cast<size_t>(axis));
}

std::unique_ptr<Kernel> make_gather_elements(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  if (x.dtype != y.dtype || !std::ranges::equal(indices.shape(), y.shape()))
    throw InvalidModel(text("gather_elements: the output must have the indices' shape and x's type; got ", view_text(y),
                            " of x ", view_text(x), " and indices ", view_text(indices),
                            ". Infer the output's shape."));
  return std::make_unique<GatherElements>(call, axis_split("gather_elements", call, x, indices));
}

}  // namespace hetnn::kernels
