// gather: slices of x chosen by an index tensor (index_select, embedding).
#include <cstring>

#include "hetnn/base/error.h"
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
    const Share share = share_of(outer_ * count_, context.thread, context.threads);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t outer = item / count_, i = item % count_;
      int64_t index =
          wide_ ? reinterpret_cast<const int64_t*>(inputs[1])[i] : reinterpret_cast<const int32_t*>(inputs[1])[i];
      if (index < 0) index += size_;
      std::memcpy(outputs[0] + item * slice_bytes_, inputs[0] + (outer * size_ + index) * slice_bytes_,
                  static_cast<size_t>(slice_bytes_));
    }
  }

 private:
  bool wide_;
  int64_t outer_ = 1, size_ = 0, count_ = 0, slice_bytes_ = 0;
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

}  // namespace hetnn::kernels
